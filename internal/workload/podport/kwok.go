package podport

import (
	"context"
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// The resources of kwok's kinds for ports.
const (
	portForwards        = "portforwards"
	clusterPortForwards = "clusterportforwards"
)

// forwards is the spec of kwok's PortForward and ClusterPortForward.
type forwards struct {
	Spec struct {
		Selector *struct {
			MatchNamespaces []string `json:"matchNamespaces"`
			MatchNames      []string `json:"matchNames"`
		} `json:"selector"` // of a ClusterPortForward
		Forwards []forward `json:"forwards"`
	} `json:"spec"`
}

// forward names the target of ports, or of all ports if it names none.
type forward struct {
	Ports  []int `json:"ports"`
	Target *struct {
		Port    int    `json:"port"`
		Address string `json:"address"`
	} `json:"target"`
	Command []string `json:"command"`
}

// forwarded returns the local port that kwok's objects name for a port of a pod, or nil if there is none: by the
// PortForward with the name of the pod, or else by the first ClusterPortForward that selects the pod and has the port.
func (p *Ports) forwarded(pod *corev1.Pod, number int) (*port, error) {
	var found *port
	look := func(e *watchcache.Entry) bool {
		var f forwards
		if e.Unreadable() == nil && json.Unmarshal(e.JSON(), &f) == nil && f.selects(pod) {
			found = f.find(number)
		}
		return found == nil
	}
	if own := p.collection(portForwards); own != nil {
		if e := own.Get(pod.Namespace, pod.Name); e != nil {
			look(e)
			return found, nil
		}
	}
	if all := p.collection(clusterPortForwards); all != nil {
		all.Scan("", "", look)
	}
	return found, nil
}

// collection returns the objects of a kind of kwok's, or nil if its definition is not installed.
func (p *Ports) collection(resource string) *watchcache.Snapshot {
	r := p.cluster.Catalog.Snapshot().Resource(stage.Group, resource)
	if r == nil {
		return nil
	}
	return p.cluster.View.Collection(r.Prefix).Snapshot()
}

func (f *forwards) selects(pod *corev1.Pod) bool {
	s := f.Spec.Selector
	return s == nil || (len(s.MatchNamespaces) == 0 || slices.Contains(s.MatchNamespaces, pod.Namespace)) &&
		(len(s.MatchNames) == 0 || slices.Contains(s.MatchNames, pod.Name))
}

// find returns the target of a port. A forward whose target is not local, or a command, stands for nothing: guards have
// refused it, unless it is older than the simulation.
func (f *forwards) find(number int) *port {
	for _, one := range f.Spec.Forwards {
		if len(one.Ports) > 0 && !slices.Contains(one.Ports, number) {
			continue
		}
		if one.Target == nil || len(one.Command) > 0 || !isLocal(one.Target.Address) {
			return nil
		}
		return &port{Local: one.Target.Port}
	}
	return nil
}

// isLocal reports whether an address is this machine's loopback address.
func isLocal(address string) bool {
	ip, err := netip.ParseAddr(address)
	return address == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// guards refuse objects of kwok's kinds that run programs, read files or open connections on the machine of kwok.
func (p *Ports) guards() map[string]verb.Guard {
	all := map[string]verb.Guard{}
	for _, resource := range []string{portForwards, clusterPortForwards} {
		all[resource+"."+stage.Group] = p.guard
	}
	for _, resource := range []string{"execs", "clusterexecs", "logs", "clusterlogs", "attaches", "clusterattaches"} {
		all[resource+"."+stage.Group] = refuse
	}
	return all
}

// guard refuses forwards to commands and to addresses that are not allowed.
func (p *Ports) guard(_ context.Context, c *verb.Call, obj, old object.Object) error {
	return check(c, obj, old, func(at *field.Path, one map[string]any) (errs field.ErrorList) {
		if there(one["command"]) {
			errs = append(errs, field.Forbidden(at.Child("command"), "the server runs no programs: use target, or the "+
				"annotation "+annotation+" of the pod"))
		}
		target, _ := one["target"].(map[string]any)
		if target == nil {
			return errs
		}
		if address, _ := target["address"].(string); !isLocal(address) {
			errs = append(errs, field.Forbidden(at.Child("target", "address"),
				"only ports of the server's machine can stand for ports of pods: use 127.0.0.1"))
		}
		number, _ := target["port"].(int64)
		if err := p.allowed(int(number)); err != nil {
			errs = append(errs, field.Forbidden(at.Child("target", "port"), err.Error()))
		}
		return errs
	})
}

// refuse refuses commands, and logs in files.
func refuse(_ context.Context, c *verb.Call, obj, old object.Object) error {
	return check(c, obj, old, func(at *field.Path, one map[string]any) (errs field.ErrorList) {
		if there(one["local"]) {
			errs = append(errs, field.Forbidden(at.Child("local"), "the server runs no programs: the annotation "+
				"bowsprit.dev/simulate-exec of the pod has the output of commands"))
		}
		for _, name := range []string{"logsFile", "previousLogsFile"} {
			if there(one[name]) {
				errs = append(errs, field.Forbidden(at.Child(name), "the server reads no files: the annotation "+
					"bowsprit.dev/simulate-logs of the pod has its log"))
			}
		}
		return errs
	})
}

// check returns the errors of the entries in the lists of a spec. A spec that does not change is accepted.
func check(
	c *verb.Call, obj, old object.Object, of func(*field.Path, map[string]any) field.ErrorList,
) error {
	spec := object.Map(obj, "spec")
	if old != nil && reflect.DeepEqual(spec, object.Map(old, "spec")) {
		return nil
	}
	var errs field.ErrorList
	for _, name := range []string{"attaches", "execs", "forwards", "logs"} {
		list, _ := spec[name].([]any)
		for i, one := range list {
			if entry, ok := one.(map[string]any); ok && len(errs) < maxErrors {
				errs = append(errs, of(field.NewPath("spec", name).Index(i), entry)...)
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(c.Kind().GroupKind(), object.String(obj, "metadata", "name"), errs)
}

// maxErrors bounds the errors of a spec.
const maxErrors = 10

// there reports whether a field has a value.
func there(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	}
	return true
}

package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/leaseelection"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Lease announces a server to clients (KEP-1965): each server has a Lease in kube-system that it renews. Its name
// derives from the host name, as in Kubernetes, so servers on one host that share an etcd also share the Lease.
type Lease struct {
	Verbs *verb.Verbs
	// Hostname of this machine.
	Hostname string
	// Peer is the address of this server for other servers, "ip:port", or "" for none.
	Peer string

	holder string // set by Begin
}

// Label is the label for the kind of server of a Lease; Server is its value for API servers.
const (
	Label  = "apiserver.kubernetes.io/identity"
	Server = "kube-apiserver"
)

var leasesResource = ref.Leases.GroupResource()

const (
	identityNamespace = metav1.NamespaceSystem
	// identityEvery is the renewal interval of a Lease, identityFor its duration and the interval of collecting expired
	// ones, as in Kubernetes.
	identityEvery = 10 * time.Second
	identityFor   = time.Hour
	// withdrawTimeout bounds the wait for the store at the end of a server; the Lease expires anyway.
	withdrawTimeout = 3 * time.Second
)

// OfHost returns the Lease's name on this host, which identifies the server in metrics.
func OfHost() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return Name(host)
}

// Name is the Lease's name on a host.
func Name(hostname string) string {
	var text []byte
	for _, part := range []string{hostname, Server} {
		text = binary.BigEndian.AppendUint16(text, uint16(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// Begin creates the Lease, or replaces one of an earlier run of the server.
func (l *Lease) Begin(ctx context.Context) error {
	name := Name(l.Hostname)
	l.holder = name + "_" + l.Verbs.NewUID()
	if l.Verbs.View().Collection(ref.Leases.Prefix).Snapshot().Get(identityNamespace, name) != nil {
		if err := l.delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return l.renew(ctx)
}

// Run renews the Lease every ten seconds and deletes Leases that were not renewed for an hour, until ctx ends; then it
// deletes its own.
func (l *Lease) Run(ctx context.Context) {
	l.collect(ctx)
	renew, collect := time.NewTicker(identityEvery), time.NewTicker(identityFor)
	defer renew.Stop()
	defer collect.Stop()
	for {
		select {
		case <-renew.C:
			err := l.renew(ctx)
			if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrGaveUp) { // the process then ends
				l.Verbs.Log().Info("the identity lease of this server cannot be renewed", "error", err)
			}
		case <-collect.C:
			l.collect(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
			defer cancel()
			err := l.delete(last, Name(l.Hostname), metav1.DeleteOptions{})
			if err != nil && !errors.Is(err, store.ErrGaveUp) { // the process then ends
				l.Verbs.Log().Info("the identity lease of this server cannot be deleted; it stays until it expires", "error", err)
			}
			return
		}
	}
}

// renew renews the Lease. It creates a new one if a client has deleted it.
func (l *Lease) renew(ctx context.Context) error {
	call, err := l.call(Name(l.Hostname))
	if err != nil {
		return err
	}
	const manager = "kube-apiserver"
	_, err = l.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			return l.Verbs.New(call, l.mark(obj))
		})
	if !apierrors.IsNotFound(err) {
		return err
	}
	obj, err := l.Verbs.New(call, l.mark(object.Object{
		"metadata": object.Object{"name": call.Name, "namespace": identityNamespace},
		"spec":     object.Object{"holderIdentity": l.holder},
	}))
	if err != nil {
		return err
	}
	_, err = l.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: manager})
	return control.IgnoreExists(err)
}

// mark sets the fields of a renewal. The holder stays the same while the Lease exists.
func (l *Lease) mark(obj object.Object) object.Object {
	set := func(in object.Object, field, key, value string) {
		m, _ := in[field].(object.Object)
		if m == nil {
			m = object.Object{}
			in[field] = m
		}
		m[key] = value
	}
	meta := obj["metadata"].(object.Object)
	set(meta, "labels", Label, Server)
	set(meta, "labels", corev1.LabelHostname, l.Hostname)
	if l.Peer != "" {
		set(meta, "annotations", "kubernetes.io/peer-advertise-address", l.Peer)
	}
	set(obj, "spec", "renewTime", l.Verbs.Now().UTC().Format(metav1.RFC3339Micro))
	obj["spec"].(object.Object)["leaseDurationSeconds"] = int64(identityFor / time.Second)
	return obj
}

// collect deletes the Leases of terminated servers.
func (l *Lease) collect(ctx context.Context) {
	var expired []*watchcache.Entry
	l.Verbs.View().Collection(ref.Leases.Prefix).Snapshot().Scan(identityNamespace, "", func(e *watchcache.Entry) bool {
		var lease coordinationv1.Lease
		if e.Labels[Label] == Server && json.Unmarshal(e.JSON(), &lease) == nil &&
			leaseelection.Over(lease.Spec, l.Verbs.Now()) {
			expired = append(expired, e)
		}
		return true
	})
	for _, e := range expired {
		seen := strconv.FormatInt(e.Revision, 10) // it may be renewed meanwhile, or deleted by another server
		err := l.delete(ctx, e.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &seen}})
		if err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
			l.Verbs.Log().Info("the identity lease of a stopped server cannot be deleted", "lease", e.Name, "error", err)
		}
	}
}

// delete deletes a Lease; a missing one is no error.
func (l *Lease) delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	call, err := l.call(name)
	if err != nil {
		return err
	}
	if _, err = l.Verbs.Delete(ctx, call, o); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete lease %s: %w", name, err)
	}
	return nil
}

func (l *Lease) call(name string) (*verb.Call, error) {
	return l.Verbs.Call(leasesResource, identityNamespace, name, verb.ServerUser())
}

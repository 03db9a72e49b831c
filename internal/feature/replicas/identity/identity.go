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

// Lease shows clients which servers there are (KEP-1965): each has a Lease in kube-system that it renews. Its name
// follows from the host's, as in Kubernetes, so servers on one host that share an etcd share it too.
type Lease struct {
	Verbs *verb.Verbs
	// Hostname of this machine.
	Hostname string
	// Peer is where other servers reach this one, "ip:port", "" if nowhere.
	Peer string

	holder string // set by Begin
}

// Label says what kind of server a Lease is of, Server for an API server.
const (
	Label  = "apiserver.kubernetes.io/identity"
	Server = "kube-apiserver"
)

var leasesResource = ref.Leases.GroupResource()

const (
	identityNamespace = metav1.NamespaceSystem
	// identityEvery is how often a Lease is renewed, identityFor how long it is good, and how often expired ones are
	// collected: kube's values.
	identityEvery = 10 * time.Second
	identityFor   = time.Hour
	// withdrawTimeout bounds how long the end of a server waits for a store that does not answer; the Lease expires
	// anyway.
	withdrawTimeout = 3 * time.Second
)

// OfHost is the Lease's name on this host, by which metrics call the server.
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

// Begin makes the Lease, in place of one that another run of the server has left.
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

// Run renews the Lease every ten seconds and deletes those of servers that have not done so for an hour, until ctx
// ends; then it deletes its own.
func (l *Lease) Run(ctx context.Context) {
	l.collect(ctx)
	renew, collect := time.NewTicker(identityEvery), time.NewTicker(identityFor)
	defer renew.Stop()
	defer collect.Stop()
	for {
		select {
		case <-renew.C:
			err := l.renew(ctx)
			if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrGaveUp) { // the process ends with that one
				l.Verbs.Log().Info("the lease that shows this server is not renewed", "error", err)
			}
		case <-collect.C:
			l.collect(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
			defer cancel()
			err := l.delete(last, Name(l.Hostname), metav1.DeleteOptions{})
			if err != nil && !errors.Is(err, store.ErrGaveUp) { // the process ends with that one
				l.Verbs.Log().Info("the lease that shows this server stays until it has expired", "error", err)
			}
			return
		}
	}
}

// renew says that the server is there now. If a client has deleted the Lease, it makes a new one.
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

// mark writes into a Lease what every renewal says. Who holds it does not change as long as it is there.
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

// collect deletes the Leases of servers that are gone.
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
			l.Verbs.Log().Info("the lease of a server that is gone is still there", "lease", e.Name, "error", err)
		}
	}
}

// delete deletes a Lease, if it is there.
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

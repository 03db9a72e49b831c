package behind

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Registration is what the host is told of this server, so that it sends requests here.
type Registration struct {
	// Versions are the groups and versions that this server answers for.
	Versions []schema.GroupVersion
	// Namespace and Name are those of the service by which the host reaches it, and Port is the service's port; 0 is
	// that on which this server listens.
	Namespace, Name string // see Versions
	Port            int    // see Versions
	// Address is where the host finds this server without a network of pods: a host name. The service is then made, of
	// type ExternalName. "" for a service that is there.
	Address string
}

// registerPause is how long it is waited at most before the host is told again of what it could not be told.
const registerPause = 10 * time.Second

// Register has the server tell the host of itself while it runs.
func (h *Host) Register(r Registration) {
	h.registration = &r
	h.hosts = []string{r.Name + "." + r.Namespace + ".svc", r.Name + "." + r.Namespace + ".svc.cluster.local"}
}

// register registers until ctx ends: at once, and as soon as the authority of the serving certificate has changed, for
// the host does not believe the next one before.
func (h *Host) register(own *part.Host) func(context.Context) error {
	return func(ctx context.Context) error {
		var told []byte
		pause := retryFirst
		for {
			changed, again := own.Certificates.Changed(), (<-chan time.Time)(nil)
			if authority := own.Certificates.ServerCA(); !bytes.Equal(authority, told) {
				err := h.tell(ctx, own, authority)
				switch {
				case err == nil:
					told, pause = authority, retryFirst
				case ctx.Err() == nil:
					own.Log.Warn("the API server in front cannot be told of this one; it is tried again",
						"server", h.url, "error", err)
					again, pause = time.After(pause), min(2*pause, registerPause)
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			case <-again:
			}
		}
	}
}

// tell makes the APIServices, and the service if it is wanted.
func (h *Host) tell(ctx context.Context, own *part.Host, authority []byte) error {
	r := h.registration
	port := r.Port
	if port == 0 {
		port = own.Port
	}
	if r.Address != "" {
		if err := h.apply(ctx, "/api/v1/namespaces/"+r.Namespace+"/services/"+r.Name, object.Object{
			"apiVersion": "v1", "kind": "Service", "metadata": object.Object{"name": r.Name},
			"spec": object.Object{"type": "ExternalName", "externalName": r.Address},
		}); err != nil {
			return fmt.Errorf("service %s/%s: %w", r.Namespace, r.Name, err)
		}
	}
	for _, gv := range r.Versions {
		name := gv.Version + "." + gv.Group
		if err := h.apply(ctx, "/apis/apiregistration.k8s.io/v1/apiservices/"+name, object.Object{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": object.Object{"name": name},
			"spec": object.Object{
				"group": gv.Group, "version": gv.Version, "groupPriorityMinimum": 1000, "versionPriority": 15,
				"caBundle": base64.StdEncoding.EncodeToString(authority),
				"service":  object.Object{"namespace": r.Namespace, "name": r.Name, "port": port},
			},
		}); err != nil {
			return fmt.Errorf("APIService %s: %w", name, err)
		}
	}
	return nil
}

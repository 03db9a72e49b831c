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

// Registration is the registration of this server at the host, which then forwards requests here.
type Registration struct {
	// Versions are the group versions that this server serves.
	Versions []schema.GroupVersion
	// Namespace and Name are the service by which the host reaches this server, and Port is the service's port; 0 means
	// the port on which this server listens.
	Namespace, Name string // see Versions
	Port            int    // see Versions
	// Address is the host name of this server, for a host without a pod network. The service is then created, with type
	// ExternalName. "" means that the service exists.
	Address string
}

// registerPause bounds the back-off of failed registrations.
const registerPause = 10 * time.Second

// Register makes the server register itself at the host while it runs.
func (h *Host) Register(r Registration) {
	h.registration = &r
	h.hosts = []string{r.Name + "." + r.Namespace + ".svc", r.Name + "." + r.Namespace + ".svc.cluster.local"}
}

// register registers until ctx ends: at once, and whenever the authority of the serving certificate has changed, since
// the host does not trust the new one before.
func (h *Host) register(own *part.Host) func(context.Context) error {
	return func(ctx context.Context) error {
		var registered []byte
		pause := retryFirst
		for {
			changed, again := own.Certificates.Changed(), (<-chan time.Time)(nil)
			if authority := own.Certificates.ServerCA(); !bytes.Equal(authority, registered) {
				err := h.createObjects(ctx, own, authority)
				switch {
				case err == nil:
					registered, pause = authority, retryFirst
				case ctx.Err() == nil:
					own.Log.Warn("this server cannot be registered at the API server in front; retried",
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

// createObjects creates the APIServices, and the service if it is requested.
func (h *Host) createObjects(ctx context.Context, own *part.Host, authority []byte) error {
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

package behind

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"net/url"
	"reflect"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/object"
)

// The ConfigMap by which an API server tells others whom they may trust.
const (
	trustNamespace = "kube-system"
	trustName      = "extension-apiserver-authentication"
)

// trusted is what the ConfigMap says. It is never changed.
type trusted struct {
	data    map[string]string
	clients *x509.CertPool
	proxy   *authn.FrontProxy // nil if it names none
}

// followTrust keeps what the ConfigMap says.
func (h *Host) followTrust(ctx context.Context) error {
	f := follower{
		host: h, path: "/api/v1/namespaces/" + trustNamespace + "/configmaps",
		query: url.Values{"fieldSelector": {"metadata.name=" + trustName}},
		replace: func(_ context.Context, items []object.Object) error {
			if len(items) == 0 {
				h.trust(nil)
			}
			for _, item := range items {
				h.trust(object.StringMap(item, "data"))
			}
			return nil
		},
		change: func(_ context.Context, event watch.EventType, obj object.Object) error {
			if event == watch.Deleted {
				return nil // the host makes it again; what it said stays true meanwhile
			}
			h.trust(object.StringMap(obj, "data"))
			return nil
		},
		failed: func(err error) {
			h.known.set(err)
			if err != nil {
				h.log.Warn("who may be trusted cannot be read from the API server in front; it is tried again",
					"configMap", trustNamespace+"/"+trustName, "error", err)
			} else {
				h.known.done()
			}
		},
	}
	return f.run(ctx)
}

// trust believes what the data of the ConfigMap says from now on. New pools mean that certificates are checked again.
func (h *Host) trust(data map[string]string) {
	if now := h.trusted.Load(); now != nil && reflect.DeepEqual(now.data, data) {
		return
	}
	next := &trusted{data: data, clients: x509.NewCertPool()}
	next.clients.AppendCertsFromPEM([]byte(data["client-ca-file"]))
	proxies := x509.NewCertPool()
	if proxies.AppendCertsFromPEM([]byte(data["requestheader-client-ca-file"])) {
		values := func(key string) (all []string) {
			if json.Unmarshal([]byte(data["requestheader-"+key]), &all) != nil {
				return nil
			}
			return all
		}
		next.proxy = &authn.FrontProxy{
			Roots: func() *x509.CertPool { return proxies }, AllowedNames: values("allowed-names"),
			UsernameHeaders: values("username-headers"), UIDHeaders: values("uid-headers"),
			GroupHeaders: values("group-headers"), ExtraPrefixes: values("extra-headers-prefix"),
		}
	}
	h.trusted.Store(next)
}

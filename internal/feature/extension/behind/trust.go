package behind

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/cert"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/object"
)

// The ConfigMap in which an API server publishes its authentication settings for extension servers.
const (
	trustNamespace = "kube-system"
	trustName      = "extension-apiserver-authentication"
)

// trusted is the parsed ConfigMap. It is immutable.
type trusted struct {
	data    map[string]string
	clients *x509.CertPool
	proxy   *authn.FrontProxy // nil if it names none
}

// followTrust follows the ConfigMap.
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
				return nil // the host recreates it; its content stays valid meanwhile
			}
			h.trust(object.StringMap(obj, "data"))
			return nil
		},
		failed: func(err error) {
			h.identified.set(err)
			if err != nil {
				h.log.Warn("the authorities and headers of the API server in front cannot be read; retried",
					"configMap", trustNamespace+"/"+trustName, "error", err)
			} else {
				h.identified.done()
			}
		},
	}
	return f.run(ctx)
}

// trust applies the data of the ConfigMap. New pools cause certificates to be verified again. Data with an unreadable
// value is ignored as a whole: the rest alone may trust more than intended, such as authorities without their list of
// allowed names.
func (h *Host) trust(data map[string]string) {
	if now := h.trusted.Load(); now != nil && reflect.DeepEqual(now.data, data) {
		return
	}
	next, err := readTrust(data)
	if err != nil {
		h.log.Warn("the ConfigMap of authorities and headers is malformed; its last valid content stays in force",
			"configMap", trustNamespace+"/"+trustName, "error", err)
		return
	}
	h.trusted.Store(next)
}

// readTrust parses the data of the ConfigMap. A missing or empty key has no values; without a list of names, all names
// are allowed.
func readTrust(data map[string]string) (*trusted, error) {
	t := &trusted{data: data}
	var err error
	if t.clients, err = readPool(data, "client-ca-file"); err != nil {
		return nil, err
	}
	proxies, err := readPool(data, "requestheader-client-ca-file")
	if err != nil {
		return nil, err
	}
	proxy := &authn.FrontProxy{Roots: func() *x509.CertPool { return proxies }}
	for key, to := range map[string]*[]string{
		"allowed-names": &proxy.AllowedNames, "username-headers": &proxy.UsernameHeaders,
		"uid-headers": &proxy.UIDHeaders, "group-headers": &proxy.GroupHeaders,
		"extra-headers-prefix": &proxy.ExtraPrefixes,
	} {
		if *to, err = readList(data, "requestheader-"+key); err != nil {
			return nil, err
		}
	}
	if data["requestheader-client-ca-file"] != "" {
		t.proxy = proxy
	}
	return t, nil
}

// readPool returns the certificates of a PEM bundle, or none if the key is missing. Each of them must be readable.
func readPool(data map[string]string, key string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if data[key] == "" {
		return pool, nil
	}
	certificates, err := cert.ParseCertsPEM([]byte(data[key]))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	for _, c := range certificates {
		pool.AddCert(c)
	}
	return pool, nil
}

// readList returns a list of strings in JSON, nil if the key is missing. null is no list.
func readList(data map[string]string, key string) ([]string, error) {
	if data[key] == "" {
		return nil, nil
	}
	var values []*string
	err := json.Unmarshal([]byte(data[key]), &values)
	if err == nil && (values == nil || slices.Contains(values, nil)) {
		err = errors.New("null is not a list of strings")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = *v
	}
	return all, nil
}

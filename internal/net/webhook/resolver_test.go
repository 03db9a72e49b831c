package webhook

import (
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func TestResolve(t *testing.T) {
	s, err := store.Open(t.Context(),
		store.Config{Prefix: "/registry", Etcd: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	kind := func(group, plural, prefix string) *catalog.Resource {
		v := &catalog.Version{Name: "v1", Served: true}
		return &catalog.Resource{
			Group: group, Plural: plural, Kind: plural, Prefix: prefix, Served: true, Versions: []*catalog.Version{v},
			Storage: v,
		}
	}
	r := Resolver{
		Catalog: catalog.New(kind("", "services", "services/specs"), kind("", "endpoints", "services/endpoints"),
			kind("discovery.k8s.io", "endpointslices", "endpointslices")),
		View: watchcache.New(s, watchcache.Options{}),
	}
	for key, spec := range map[string]string{
		"services/specs/ns/external":   `"spec":{"type":"ExternalName","externalName":"hooks.example.com"}`,
		"services/specs/ns/sliced":     `"spec":{"type":"ClusterIP","clusterIP":"10.0.0.1","ipFamilies":["IPv6"],"ports":[{"name":"https","port":443},{"name":"other","port":80}]}`,
		"services/specs/ns/listed":     `"spec":{"clusterIP":"10.0.0.2","ports":[{"port":443}]}`,
		"services/specs/ns/ip":         `"spec":{"type":"NodePort","clusterIP":"10.0.0.3","ports":[{"port":443}]}`,
		"services/specs/ns/headless":   `"spec":{"clusterIP":"None","ports":[{"port":443}]}`,
		"services/specs/ns/odd":        `"spec":{"type":"Odd"}`,
		"services/endpoints/ns/listed": `"subsets":[{"addresses":[{"ip":"192.0.2.2"}],"notReadyAddresses":[{"ip":"192.0.2.3"}],"ports":[{"port":8443}]}]`,
		"endpointslices/ns/s-1":        `"addressType":"IPv4","ports":[{"name":"https","port":9443}],"endpoints":[{"addresses":["192.0.2.4"]}]`,
		"endpointslices/ns/s-2":        `"addressType":"IPv6","ports":[{"name":"https","port":9443},{"name":"x"}],"endpoints":[{"addresses":["2001:db8::1"]},{"addresses":["2001:db8::2"],"conditions":{"ready":false}}]`,
	} {
		name := key[strings.LastIndexByte(key, '/')+1:]
		value := `{"metadata":{"name":"` + name +
			`","namespace":"ns","labels":{"kubernetes.io/service-name":"sliced"}},` + spec + `}`
		if _, err := s.Create(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.View.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		port int32
		want string
	}{
		{"external", 9443, "hooks.example.com:9443"},
		{"sliced", 443, "[2001:db8::1]:9443"},
		{"sliced", 80, "10.0.0.1:80"},
		{"sliced", 81, `no service port 81 found for service "sliced"`},
		{"listed", 443, "192.0.2.2:8443"},
		{"ip", 443, "10.0.0.3:443"},
		{"headless", 443, `no endpoints available for service "headless"`},
		{"odd", 443, `unsupported service type "Odd"`},
		{"none", 443, `service "none" not found`},
	} {
		got, err := r.Resolve(t.Context(), "ns", test.name, test.port)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s:%d: got %s, want %s", test.name, test.port, got, test.want)
		}
	}
}

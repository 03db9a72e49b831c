package discovery

import (
	"encoding/json"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// parseGroups parses groups from "group version resource:verbs, resource:verbs; …"; formatGroups is its inverse.
func parseGroups(text string) (out []apidiscoveryv2.APIGroupDiscovery) {
	for _, line := range strings.Split(text, "; ") {
		words := strings.Fields(line)
		if len(out) == 0 || out[len(out)-1].Name != words[0] {
			g := apidiscoveryv2.APIGroupDiscovery{}
			g.Name = words[0]
			out = append(out, g)
		}
		v := apidiscoveryv2.APIVersionDiscovery{Version: words[1]}
		for _, word := range words[2:] {
			name, rest, _ := strings.Cut(word, ":")
			verbs, subresource, _ := strings.Cut(rest, "/")
			r := apidiscoveryv2.APIResourceDiscovery{Resource: name, Verbs: strings.Split(verbs, ",")}
			if subresource != "" {
				r.Subresources = []apidiscoveryv2.APISubresourceDiscovery{{Subresource: subresource}}
			}
			v.Resources = append(v.Resources, r)
		}
		g := &out[len(out)-1]
		g.Versions = append(g.Versions, v)
	}
	return out
}

func formatGroups(groups []apidiscoveryv2.APIGroupDiscovery) string {
	var lines []string
	for _, g := range groups {
		for _, v := range g.Versions {
			line := g.Name + " " + v.Version
			for _, r := range v.Resources {
				line += " " + r.Resource + ":" + strings.Join(r.Verbs, ",")
				for _, s := range r.Subresources {
					line += "/" + s.Subresource
				}
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

func TestMergeServers(t *testing.T) {
	t.Parallel()
	const local = "apps v1 a:get b:get; batch v1 j:get"
	for _, test := range []struct {
		name, other, want string
		same              bool
	}{
		{"the same", local, local, true},
		{"a group more", "apps v1 a:get b:get; auto v1 h:get; batch v1 j:get",
			"apps v1 a:get b:get; auto v1 h:get; batch v1 j:get", false},
		{"a group less", "apps v1 a:get b:get", local, false},
		{"a version more", "apps v2 a:get; apps v1 a:get b:get; batch v1 j:get",
			"apps v2 a:get; apps v1 a:get b:get; batch v1 j:get", false},
		{"a resource more", "apps v1 a:get aa:list b:get; batch v1 j:get",
			"apps v1 a:get aa:list b:get; batch v1 j:get", false},
		{"verbs and subresources", "apps v1 a:watch,get b:create/scale; batch v1 j:get",
			"apps v1 a:get,watch b:create,get/scale; batch v1 j:get", false},
	} {
		for _, own := range []string{"a", "z"} { // before and after the other one
			got, changed := mergeServers(parseGroups(local), &Others{
				Own: own, Servers: map[string][]apidiscoveryv2.APIGroupDiscovery{"m": parseGroups(test.other)},
			})
			if text := formatGroups(got); text != test.want || changed == test.same {
				t.Errorf("%s, own name %s: %v %s", test.name, own, changed, text)
			}
		}
	}
	// If the servers' orders conflict, the first server's order wins, so that all responses are equal.
	for own, want := range map[string]string{"a": local, "z": "batch v1 j:get; apps v1 a:get b:get"} {
		got, _ := mergeServers(parseGroups(local), &Others{
			Own: own, Servers: map[string][]apidiscoveryv2.APIGroupDiscovery{
				"m": parseGroups("batch v1 j:get; apps v1 a:get b:get"),
			},
		})
		if text := formatGroups(got); text != want {
			t.Errorf("another order, own name %s: %s", own, text)
		}
	}
}

// TestPeers queries a server with a peer: clients get the resources of both, unless they request one server's, or a
// form without this feature.
func TestPeers(t *testing.T) {
	t.Parallel()
	peers := NewPeers()
	h, c := handler(), catalog.New(namespaces(), custom("b.example.com", "widgets", "Widget"))
	h.options.Peers = peers
	alone := get(t, h, c, "/apis", v2)
	peers.Set(&Others{Own: "a", Servers: map[string][]apidiscoveryv2.APIGroupDiscovery{
		"b": parseGroups("c.example.com v1 c:get"),
	}})
	w := get(t, h, c, "/apis", v2)
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Items) != 2 ||
		list.Items[1].Name != "c.example.com" || w.Header().Get("ETag") == alone.Header().Get("ETag") ||
		w.Header().Get("Content-Type") != v2 {
		t.Errorf("%v %v %s", err, w.Header(), w.Body)
	}
	if again := get(t, h, c, "/apis", v2, "If-None-Match", w.Header().Get("ETag")); again.Code != 304 {
		t.Errorf("the same: %d", again.Code)
	}
	if one := get(t, h, c, "/apis", v2+";profile=nopeer"); one.Body.String() != alone.Body.String() ||
		one.Header().Get("ETag") != alone.Header().Get("ETag") {
		t.Errorf("nopeer: %s", one.Body)
	}
	for path, accept := range map[string]string{"/apis": v2beta1, "/apis/": "application/json", "/api": v2} {
		if one := get(t, h, c, path, accept); strings.Contains(one.Body.String(), "c.example.com") {
			t.Errorf("%s as %s: %s", path, accept, one.Body)
		}
	}
	// A new definition appears at once.
	c.Update(1, []*catalog.Resource{custom("d.example.com", "things", "Thing")}, nil)
	if now := get(t, h, c, "/apis", v2); !strings.Contains(now.Body.String(), "d.example.com") ||
		!strings.Contains(now.Body.String(), "c.example.com") {
		t.Errorf("%s", now.Body)
	}
}

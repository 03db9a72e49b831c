package quota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestAdd(t *testing.T) {
	quota := func(hard, used corev1.ResourceList) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{
			Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used},
		}
		q.Name = "q"
		return q
	}
	tab := Usage{"count/crontabs.stable.example.com": 1}
	secret := Usage{"count/secrets": 1, "secrets": 1}
	for name, c := range map[string]struct {
		quota     *corev1.ResourceQuota
		wanted    Usage
		used, err string
	}{
		"not counted": {quota(list("pods", "1"), list("pods", "1")), tab, "", ""},
		"room":        {quota(list("secrets", "2"), list("secrets", "1")), secret, "secrets=2", ""},
		"full": {quota(list("secrets", "1"), list("secrets", "1")), secret, "",
			"exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1"},
		"full twice": {quota(list("secrets", "1", "count/secrets", "1"), list("secrets", "1", "count/secrets", "1")),
			secret, "",
			"exceeded quota: q, requested: count/secrets=1,secrets=1, used: count/secrets=1,secrets=1, limited: count/secrets=1,secrets=1"},
		"full by one name": {quota(list("secrets", "5", "count/secrets", "1"),
			list("secrets", "1", "count/secrets", "1")), secret, "",
			"exceeded quota: q, requested: count/secrets=1, used: count/secrets=1, limited: count/secrets=1"},
		"more than full": {quota(list("count/crontabs.stable.example.com", "1k"),
			list("count/crontabs.stable.example.com", "1500")), tab, "",
			"exceeded quota: q, requested: count/crontabs.stable.example.com=1, used: count/crontabs.stable.example.com=1500, limited: count/crontabs.stable.example.com=1k"},
		"not known yet": {quota(list("secrets", "2"), list()), secret, "",
			"status unknown for quota: q, resources: secrets"},
		"nothing of it": {quota(list("services.nodeports", "0"), list("services.nodeports", "0")),
			Usage{"services": 1, "services.nodeports": 0}, "", ""},
		"other names stay": {quota(list("secrets", "2", "pods", "1"), list("secrets", "0", "pods", "1")), secret,
			"secrets=1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			used, err := add(c.quota, c.wanted)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != c.err {
				t.Errorf("error %q, want %q", text, c.err)
			}
			if (used == nil) != (c.used == "") {
				t.Fatalf("used %v, want %q", used, c.used)
			}
			if q, ok := used["secrets"]; ok && "secrets="+q.String() != c.used {
				t.Errorf("used %v, want %q", used, c.used)
			}
			if _, ok := c.quota.Status.Used["pods"]; ok && used != nil {
				if kept := used["pods"]; kept.String() != "1" {
					t.Errorf("pods are %s", kept.String())
				}
			}
		})
	}
}

func TestOf(t *testing.T) {
	ports := []any{map[string]any{"port": int64(1), "nodePort": int64(30000)}, map[string]any{"port": int64(2)}}
	for name, c := range map[string]struct {
		group, plural string
		obj           map[string]any
		want          Usage
	}{
		"custom":      {"stable.example.com", "crontabs", nil, Usage{"count/crontabs.stable.example.com": 1}},
		"plain name":  {"", "configmaps", nil, Usage{"count/configmaps": 1, "configmaps": 1}},
		"no name":     {"", "endpoints", nil, Usage{"count/endpoints": 1}},
		"same plural": {"example.com", "pods", nil, Usage{"count/pods.example.com": 1}},
		"pod": {"", "pods", map[string]any{"status": map[string]any{"phase": "Running"}},
			Usage{"count/pods": 1, "pods": 1}},
		"ended pod": {"", "pods", map[string]any{"status": map[string]any{"phase": "Failed"}},
			Usage{"count/pods": 1}},
		"service": {"", "services", map[string]any{"spec": map[string]any{"type": "NodePort", "ports": ports}},
			Usage{"count/services": 1, "services": 1, "services.nodeports": 2, "services.loadbalancers": 0}},
		"balancer": {"", "services",
			map[string]any{
				"spec": map[string]any{"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": false},
			},
			Usage{"count/services": 1, "services": 1, "services.nodeports": 1, "services.loadbalancers": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(&catalog.Resource{Group: c.group, Plural: c.plural, Namespaced: true}, c.obj)
			if len(got) != len(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			for key, n := range c.want {
				if got[key] != n {
					t.Errorf("got %v, want %v", got, c.want)
				}
			}
		})
	}
}

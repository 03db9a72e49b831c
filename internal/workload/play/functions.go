package play

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// version is the kwok version that this server follows: kwok's Stages write it into node status.
const version = "v0.8.0"

// functions returns the functions that the templates of a Stage may call for an object.
func (p *player) functions(t target) stage.Functions {
	node, _ := t.entry.Field("spec.nodeName")
	if t.of.Prefix == cluster.Nodes.Prefix {
		node = t.entry.Name
	}
	ip := func(nodeName string, hostNetwork bool, uid, name, namespace string) string {
		if hostNetwork {
			return p.nodeIP(nodeName)
		}
		return p.addresses.Next(cmp.Or(uid, namespace+"/"+name))
	}
	return stage.Functions{
		"Now":         func() string { return stage.Time(p.Now()) },
		"now":         p.Now,
		"StartTime":   func() string { return stage.Time(p.Started) },
		"Version":     func() string { return version },
		"NodeName":    func() string { return node },
		"NodePort":    func() int { return 0 }, // nothing listens there
		"NodeIP":      func() string { return p.nodeIP(node) },
		"NodeIPWith":  p.nodeIP,
		"NodeIPsWith": func(nodeName string) []string { return []string{p.nodeIP(nodeName)} },
		"PodIP":       func() string { return p.addresses.Next(t.entry.UID) },
		"PodIPWith":   ip,
		"PodIPsWith": func(nodeName string, hostNetwork bool, uid, name, namespace string) []string {
			return []string{ip(nodeName, hostNetwork, uid, name, namespace)}
		},
	}
}

// nodeIP returns the address of a node: its own, or the default of simulated nodes.
func (p *player) nodeIP(name string) string {
	if n := cluster.Nodes.Get(p.Cluster, "", name); n != nil {
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				return a.Address
			}
		}
	}
	return cluster.NodeAddress(name).String()
}

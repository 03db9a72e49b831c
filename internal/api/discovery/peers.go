package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Others describes the other servers and their groups. It is immutable once published.
type Others struct {
	// Own is the name of this server. All servers merge the lists in the order of their names, so that their responses
	// are equal.
	Own string
	// Servers holds the groups of each other server, by its name, without the core group.
	Servers map[string][]apidiscoveryv2.APIGroupDiscovery
}

// Peers holds the groups of other servers.
type Peers struct {
	others               atomic.Pointer[Others]
	merged               atomic.Pointer[merged]
	hits, misses, noPeer prometheus.Counter
}

// NewPeers returns Peers without other servers.
func NewPeers() *Peers {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Subsystem: "aggregator_discovery", Name: name, Help: help})
	}
	return &Peers{
		hits: counter("peer_aggregated_cache_hits_total",
			"Requests for discovery of all servers that the cache answered."),
		misses: counter("peer_aggregated_cache_misses_total",
			"Requests for discovery of all servers that needed a new merged document."),
		noPeer: counter("nopeer_requests_total", "Requests for discovery of this server alone (profile=nopeer)."),
	}
}

// Set replaces the other servers; nil means none.
func (p *Peers) Set(o *Others) { p.others.Store(o) }

// Collectors returns the metrics, which are kube-apiserver's.
func (p *Peers) Collectors() []prometheus.Collector {
	return []prometheus.Collector{p.hits, p.misses, p.noPeer}
}

// merged is the document for one state of this server and the others.
type merged struct {
	others *Others
	own    string // the ETag of this server's own document
	etag   string
	list   *apidiscoveryv2.APIGroupDiscoveryList // nil if equal to this server's own document
	json   []byte
}

// document returns the aggregated document of all servers. It returns nil if that equals the document of groups, which
// this server serves under the ETag own.
func (p *Peers) document(groups []*catalog.Group, own string) *merged {
	o := p.others.Load()
	if o == nil {
		return nil
	}
	m := p.merged.Load()
	if m != nil && m.others == o && m.own == own {
		p.hits.Inc()
	} else {
		p.misses.Inc()
		m = merge(groups, own, o)
		p.merged.Store(m)
	}
	if m.list == nil {
		return nil
	}
	return m
}

func merge(groups []*catalog.Group, own string, o *Others) *merged {
	m := &merged{others: o, own: own}
	var local []apidiscoveryv2.APIGroupDiscovery
	for _, g := range groups {
		local = append(local, aggregatedGroup(g))
	}
	all, changed := mergeServers(local, o)
	if !changed {
		return m
	}
	m.list = &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.GroupName + "/v2"},
		Items:    all,
	}
	body, err := json.Marshal(m.list)
	if err != nil {
		panic(fmt.Errorf("encode discovery: %w", err)) // strings only
	}
	m.json = append(body, '\n')
	m.etag = fmt.Sprintf(`"%X"`, sha512.Sum512(m.json))
	return m
}

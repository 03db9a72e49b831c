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

// Others are the servers beside this one, and what they serve. It is not changed once it is given away.
type Others struct {
	// Own is the name of this server among them: all of them put the lists together in the order of their names, so
	// that their answers are the same.
	Own string
	// Servers are the groups that each of the others serves, by its name, without the core group.
	Servers map[string][]apidiscoveryv2.APIGroupDiscovery
}

// Peers is what discovery knows of other servers.
type Peers struct {
	others               atomic.Pointer[Others]
	merged               atomic.Pointer[merged]
	hits, misses, noPeer prometheus.Counter
}

// NewPeers returns that there are none.
func NewPeers() *Peers {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Subsystem: "aggregator_discovery", Name: name, Help: help})
	}
	return &Peers{
		hits: counter("peer_aggregated_cache_hits_total",
			"Requests for discovery of all servers whose answer was there."),
		misses: counter("peer_aggregated_cache_misses_total",
			"Requests for discovery of all servers whose answer had to be put together."),
		noPeer: counter("nopeer_requests_total", "Requests for what this server alone serves (profile=nopeer)."),
	}
}

// Set says which others there are, nil if none.
func (p *Peers) Set(o *Others) { p.others.Store(o) }

// Collectors are the metrics, kube-apiserver's.
func (p *Peers) Collectors() []prometheus.Collector {
	return []prometheus.Collector{p.hits, p.misses, p.noPeer}
}

// merged is the document of one state of this server and the others.
type merged struct {
	others *Others
	own    string // the ETag of what this server serves
	etag   string
	list   *apidiscoveryv2.APIGroupDiscoveryList // nil if it is what this server serves
	json   []byte
}

// document returns the aggregated document of all servers, nil if it is that of groups, which this server serves and
// whose ETag is own.
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

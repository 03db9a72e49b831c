package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// cache holds a fragment for each group that was read.
type cache struct {
	mu        sync.Mutex
	fragments map[string]*fragment
}

// fragment is one group's part of the lists, as JSON. It is immutable.
type fragment struct {
	stamp      uint64
	group      []byte // an item of APIGroupList
	aggregated []byte // an item of APIGroupDiscoveryList; the same in v2 and v2beta1
	sum        [sha512.Size]byte
}

// get returns the fragments of groups, in order, and drops fragments of removed groups.
func (c *cache) get(groups []*catalog.Group) []*fragment {
	out := make([]*fragment, len(groups))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, g := range groups {
		f := c.fragments[g.Name]
		if f == nil || f.stamp != g.Stamp {
			old := f
			f = newFragment(g)
			// A request with an older snapshot must not replace a newer fragment.
			if old == nil || old.stamp < f.stamp {
				if c.fragments == nil {
					c.fragments = map[string]*fragment{}
				}
				c.fragments[g.Name] = f
			}
		}
		out[i] = f
	}
	// The core group is read alone; every other read passes all groups.
	if len(groups) > 0 && groups[0].Name != "" && len(c.fragments) > len(groups)+1 {
		keep := make(map[string]*fragment, len(groups)+1)
		if f := c.fragments[""]; f != nil {
			keep[""] = f
		}
		for i, g := range groups {
			keep[g.Name] = out[i]
		}
		c.fragments = keep
	}
	return out
}

func newFragment(g *catalog.Group) *fragment {
	f := &fragment{stamp: g.Stamp, group: mustJSON(apiGroup(g)), aggregated: mustJSON(aggregatedGroup(g))}
	f.sum = sha512.Sum512(f.aggregated)
	return f
}

// etag identifies the aggregated list of groups by content: the same on every replica and after a restart.
func (c *cache) etag(groups []*catalog.Group) string {
	sum := sha512.New()
	for _, f := range c.get(groups) {
		sum.Write(f.sum[:])
	}
	return fmt.Sprintf(`"%X"`, sum.Sum(nil))
}

// groupList returns the JSON of groupList(groups).
func (c *cache) groupList(groups []*catalog.Group) []byte {
	return c.concat(`{"kind":"APIGroupList","apiVersion":"v1","groups":[`, groups,
		func(f *fragment) []byte { return f.group })
}

// aggregatedList returns the JSON of aggregatedList(groups, version).
func (c *cache) aggregatedList(groups []*catalog.Group, version string) []byte {
	head := `{"kind":"APIGroupDiscoveryList","apiVersion":"` + apidiscoveryv2.GroupName + "/" + version +
		`","metadata":{},"items":[`
	return c.concat(head, groups, func(f *fragment) []byte { return f.aggregated })
}

func (c *cache) concat(head string, groups []*catalog.Group, part func(*fragment) []byte) []byte {
	fragments := c.get(groups)
	size := len(head) + len("]}\n")
	for _, f := range fragments {
		size += len(part(f)) + 1
	}
	out := append(make([]byte, 0, size), head...)
	for i, f := range fragments {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, part(f)...)
	}
	return append(out, "]}\n"...)
}

// aggregatedList is the aggregated document of groups, for encodings that have no fragments.
func aggregatedList(groups []*catalog.Group, version string) func() object {
	return func() object {
		out := &apidiscoveryv2.APIGroupDiscoveryList{
			TypeMeta: metav1.TypeMeta{
				Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.GroupName + "/" + version,
			},
		}
		for _, g := range groups {
			out.Items = append(out.Items, aggregatedGroup(g))
		}
		return out
	}
}

// mustJSON encodes a document. It consists of strings and booleans only, so encoding cannot fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode discovery: %w", err))
	}
	return b
}

package rbac

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestTrie compares tries with maps: with good hashes, with mostly colliding hashes, and every older version after
// later changes.
func TestTrie(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]func(int) uint64{
		"spread":  func(k int) uint64 { return uint64(k) * 0x9e3779b97f4a7c15 },
		"similar": func(k int) uint64 { return uint64(k%7) << 58 },
		"alike":   func(int) uint64 { return 1 << 63 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			type version struct {
				trie trie[string, int]
				want map[string]int
			}
			random := rand.New(rand.NewPCG(1, 2))
			var versions []version
			now := version{want: map[string]int{}}
			for batch := range uint64(60) {
				now.want = maps.Clone(now.want)
				for range random.IntN(12) {
					k := random.IntN(40)
					key := strconv.Itoa(k)
					if random.IntN(3) == 0 {
						now.trie = now.trie.remove(batch+1, hash(k), key)
						delete(now.want, key)
						continue
					}
					v := random.Int()
					now.trie = now.trie.put(batch+1, hash(k), key, v)
					now.want[key] = v
				}
				versions = append(versions, now)
			}
			for i, v := range versions {
				for k := range 40 {
					key := strconv.Itoa(k)
					got, ok := v.trie.get(hash(k), key)
					if want, has := v.want[key]; got != want || ok != has {
						t.Fatalf("version %d: %s is %d, %v; want %d, %v", i, key, got, ok, want, has)
					}
				}
			}
		})
	}
}

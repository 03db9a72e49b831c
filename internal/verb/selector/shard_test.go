package selector

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "k8s.io/apiserver/pkg/sharding"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// TestShards compares shards with Kubernetes' library, for ranges that touch, overlap, end at the limits of the hash,
// and come in any order.
func TestShards(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	bound := func() uint64 { return random.Uint64() >> 60 << 60 } // so that some are the same
	found := 0
	for range 300 {
		fieldPath := []string{"object.metadata.uid", "object.metadata.namespace"}[random.IntN(2)]
		var ranges []string
		for range 1 + random.IntN(4) {
			start, end := bound(), fmt.Sprintf("0x%016x", bound())
			if end <= fmt.Sprintf("0x%016x", start) {
				end = "0x10000000000000000"
			}
			ranges = append(ranges, fmt.Sprintf("shardRange(%s, '0x%016x', '%s')", fieldPath, start, end))
		}
		text := strings.Join(ranges, " || ")
		mine, err := ParseShard(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		theirs, err := upstream.Parse(text)
		if err != nil || mine.String() != theirs.String() {
			t.Fatalf("%s: %s, %v", text, mine, err)
		}
		for range 20 {
			e := entry(fmt.Sprint(random.Uint64()), fmt.Sprint(random.Uint64()))
			want, err := theirs.Matches(&metav1.PartialObjectMetadata{
				ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, UID: types.UID(e.UID)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if mine.Includes(e) != want {
				t.Errorf("%s: uid %s, namespace %s: %v", text, e.UID, e.Namespace, !want)
			}
			if want {
				found++
			}
		}
	}
	if found < 500 {
		t.Errorf("%d in all shards", found)
	}
}

func entry(namespace, uid string) *watchcache.Entry {
	return &watchcache.Entry{Namespace: namespace, Name: "a", UID: uid}
}

// TestShardNames checks that equal shards share one index, however the client writes them.
func TestShardNames(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for text, desc := range map[string]string{
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')":                          "half",
		"  shardRange(object.metadata.uid,\n'0x0000000000000000', \"0x8000000000000000\")":                     "half",
		between("uid", 4, 8) + " || " + between("uid", 0, 5):                                                   "half",
		between("uid", 4, 8) + " || " + between("uid", 0, 4):                                                   "half",
		"shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')":                    "namespaces",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')":                         "all",
		between("uid", 0, 12) + "||shardRange(object.metadata.uid,'0xb000000000000000','0x10000000000000000')": "all",
		between("uid", 4, 8) + " || " + between("uid", 0, 3):                                                   "gap",
	} {
		s, err := ParseShard(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if name, ok := names[desc]; ok && name != s.name {
			t.Errorf("%s is %s, want %s", text, s.name, name)
		}
		names[desc] = s.name
	}
	if names["half"] == names["namespaces"] || names["half"] == names["gap"] || names["gap"] == names["all"] {
		t.Errorf("different shards have one name: %q", names)
	}
}

// between is a range of sixteenths.
func between(field string, from, to int) string {
	return fmt.Sprintf("shardRange(object.metadata.%s, '0x%x000000000000000', '0x%x000000000000000')", field, from, to)
}

// TestShardConcern: a watch of a shard waits for events of the shard, in its namespace if it has one.
func TestShardConcern(t *testing.T) {
	t.Parallel()
	all, err := ParseShard(between("uid", 0, 15) + "||shardRange(object.metadata.uid,'0xf000000000000000','0x10000000000000000')")
	if err != nil {
		t.Fatal(err)
	}
	none := &Shard{name: "none"}
	for _, test := range []struct {
		shard     *Shard
		namespace string
		wakes     bool
	}{{all, "", true}, {all, "here", true}, {all, "there", false}, {none, "", false}, {none, "here", false}} {
		ix, value := test.shard.concern(test.namespace)
		if wakes := ix.Value(entry("here", "1")) == value; wakes != test.wakes {
			t.Errorf("%s of %q: %v", test.shard.name, test.namespace, wakes)
		}
	}
}

func FuzzParseShard(f *testing.F) {
	f.Add(between("uid", 0, 8) + " || " + between("uid", 8, 9))
	f.Add("shardRange(object.metadata.namespace, '0x0000000000000000', '0x10000000000000000')")
	f.Add("shardRange(object.metadata.uid, '0x10000000000000000', '0x10000000000000000')")
	f.Add("true || !a")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseShard(text)
		if err != nil {
			return
		}
		again, err := ParseShard(s.String())
		if err != nil || again.name != s.name {
			t.Errorf("%q: %v, %v", text, again, err)
		}
	})
}

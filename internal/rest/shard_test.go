package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// startSharded is start with the feature gate ShardedListAndWatch.
func startSharded(t *testing.T) *server {
	t.Helper()
	return startWith(t, memory.New(), func(c *verb.Config) {
		c.Sharded = true
		next := c.NewUID
		// The hashes of texts as short as its own are close together.
		c.NewUID = func() string { return uuid.NewSHA1(uuid.Nil, []byte(next())).String() }
	})
}

// thirds are the hashes, in three parts.
var thirds = []string{"0x0000000000000000", "0x5555555555555555", "0xaaaaaaaaaaaaaaaa", "0x10000000000000000"}

// third is the selector of a third by a field of the metadata.
func third(field string, i int) string {
	return fmt.Sprintf("shardRange(object.metadata.%s, '%s', '%s')", field, thirds[i], thirds[i+1])
}

func shard(selector string) string { return "shardSelector=" + url.QueryEscape(selector) }

// inThird reports whether a value is in the i-th third.
func inThird(value string, i int) bool {
	hash := "0x" + sharding.HashField(value)
	return !sharding.HexLess(hash, thirds[i]) && sharding.HexLess(hash, thirds[i+1])
}

// TestShardedLists lists the thirds of a collection, in one piece and in pages, while objects change. The collection is
// larger than is searched without an index.
func TestShardedLists(t *testing.T) {
	t.Parallel()
	s := startSharded(t)
	defineWidgets(t, s)
	namespaces := []string{"a", "b", "c", "d", "default"}
	for _, name := range namespaces[:4] {
		send(t, s, http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`, nil)
	}
	for i := range 250 {
		send(t, s, http.MethodPost, widgetsIn(namespaces[i%5]), widget(fmt.Sprint("x", i), fmt.Sprint("b", i%3)), nil)
	}
	for round := range 4 {
		var all list
		send(t, s, http.MethodGet, widgets, "", &all)
		if all.Metadata.ShardInfo != nil {
			t.Errorf("a list of all has %+v", all.Metadata.ShardInfo)
		}
		for _, field := range []string{"uid", "namespace"} {
			for i := range 3 {
				var want, inD, labelled []string
				for _, o := range all.Items {
					value := o.Metadata.Namespace
					if field == "uid" {
						value = string(o.Metadata.UID)
					}
					if !inThird(value, i) {
						continue
					}
					name := o.Metadata.Namespace + "/" + o.Metadata.Name
					want = append(want, name)
					if o.Metadata.Namespace == "d" {
						inD = append(inD, name)
					}
					if o.Spec.Bucket == "b1" {
						labelled = append(labelled, name)
					}
				}
				selector := third(field, i)
				wantList(t, s, widgets+"?"+shard(selector), selector, want)
				wantList(t, s, widgetsIn("d")+"?"+shard(selector), selector, inD)
				wantList(t, s, widgets+"?labelSelector=b%3Db1&"+shard(selector), selector, labelled)
			}
		}
		for i := range 5 {
			send(t, s, http.MethodDelete, widgetsIn(namespaces[i])+fmt.Sprint("/x", i+round*5), "", nil)
			send(t, s, http.MethodPost, widgetsIn(namespaces[i]), widget(fmt.Sprint("y", i+round*5), "b1"), nil)
		}
	}
	var l list
	send(t, s, http.MethodDelete, widgetsIn("a")+"?"+shard(third("uid", 1)), "", &l)
	if len(l.Items) == 0 {
		t.Error("nothing of the namespace is in the shard")
	}
	send(t, s, http.MethodGet, widgetsIn("a"), "", &l)
	for _, o := range l.Items {
		if inThird(string(o.Metadata.UID), 1) {
			t.Errorf("%s is still there", o.Metadata.Name)
		}
	}
	if len(l.Items) < 20 {
		t.Errorf("of the other shards %d are there", len(l.Items))
	}
}

// wantList lists in one piece and in pages.
func wantList(t *testing.T, s *server, target, selector string, want []string) {
	t.Helper()
	var l list
	send(t, s, http.MethodGet, target, "", &l)
	if got := l.names(); !slices.Equal(got, want) {
		t.Errorf("%s\nis   %q\nwant %q", target, got, want)
	}
	if info := l.Metadata.ShardInfo; info == nil || info.Selector != selector {
		t.Errorf("%s says of itself %+v", target, info)
	}
	revision := l.Metadata.ResourceVersion
	var got []string
	for page := target + "&limit=7"; ; page = target + "&limit=7&continue=" + l.Metadata.Continue {
		l = list{}
		send(t, s, http.MethodGet, page, "", &l)
		got = append(got, l.names()...)
		if l.Metadata.ShardInfo == nil || l.Metadata.RemainingItemCount != nil ||
			l.Metadata.ResourceVersion != revision {
			t.Errorf("%s: %+v", page, l.Metadata)
		}
		if l.Metadata.Continue == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages of %s\nare  %q\nwant %q", target, got, want)
	}
}

// TestShardForms finds the shard selector in each form of a list.
func TestShardForms(t *testing.T) {
	t.Parallel()
	s := startSharded(t)
	send(t, s, http.MethodPost, all, `{"metadata":{"name":"one"}}`, nil)
	selector := third("namespace", 0) + " || " + third("namespace", 2) + " || " + third("namespace", 1)
	target := all + "?" + shard(strings.ReplaceAll(selector, " ", ""))
	for _, accept := range []string{
		codec.JSON, "application/json;as=Table;v=v1;g=meta.k8s.io",
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", codec.CBOR, codec.Protobuf,
	} {
		body := ask(t, s, http.MethodGet, target, "", accept).Body.Bytes()
		var l metav1.PartialObjectMetadataList
		var err error
		switch accept {
		case codec.Protobuf:
			var maps corev1.ConfigMapList
			_, err = codec.FromProtobuf(body, &maps)
			l.ListMeta = maps.ListMeta
		case codec.CBOR:
			err = codec.UnmarshalCBOR(body, &l)
		default:
			err = json.Unmarshal(body, &l)
		}
		if err != nil || l.ShardInfo == nil || l.ShardInfo.Selector != selector {
			t.Errorf("%s: %+v, %v", accept, l.ListMeta, err)
		}
	}
}

// TestShardedWatches has each event at the watch of its shard alone, whichever way the watch begins.
func TestShardedWatches(t *testing.T) {
	t.Parallel()
	s := startSharded(t)
	defineWidgets(t, s)
	in := widgetsIn("default")
	const named = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	old := make([][]string, 3) // the names by thirds
	at := func(into [][]string, name string) int {
		var o struct{ Metadata metav1.ObjectMeta }
		send(t, s, http.MethodPost, in, widget(name, "b"), &o)
		i := slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return inThird(string(o.Metadata.UID), i) })
		into[i] = append(into[i], name)
		return i
	}
	for i := range 12 {
		at(old, fmt.Sprintf("x%02d", i))
	}
	var now list
	send(t, s, http.MethodGet, in, "", &now)
	from := "&resourceVersion=" + now.Metadata.ResourceVersion
	var later, lists, everywhere, both []*watching
	for i := range 3 {
		of := "?watch=1&" + shard(third("uid", i))
		later = append(later, watch(t, s, in+of+from))
		everywhere = append(everywhere, watch(t, s, widgets+of+from))
		both = append(both, watch(t, s, widgets+of+from+"&labelSelector=b%3Db"))
		lists = append(lists, watch(t, s, in+of+named))
	}
	for i, w := range lists {
		for _, name := range old[i] {
			w.want("ADDED " + name + " b")
		}
		if f := w.next(); f.Type != "BOOKMARK" {
			t.Errorf("after the initial events: %+v", f)
		}
	}
	for n := range 12 {
		name := fmt.Sprintf("y%02d", n)
		i := at(make([][]string, 3), name)
		send(t, s, http.MethodPatch, in+"/"+name, `{"metadata":{"annotations":{"a":"b"}}}`, nil)
		send(t, s, http.MethodDelete, in+"/"+name, "", nil)
		for _, w := range []*watching{later[i], lists[i], everywhere[i], both[i]} {
			w.want("ADDED "+name+" b", "MODIFIED "+name+" b", "DELETED "+name+" b")
		}
	}
	other := watch(t, s, widgetsIn("other")+"?watch=1&"+shard(third("uid", 0)+" || "+third("uid", 1)+" || "+
		third("uid", 2))+from)
	send(t, s, http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"other"}}`, nil)
	send(t, s, http.MethodPost, in, widget("here", "b"), nil)
	send(t, s, http.MethodPost, widgetsIn("other"), widget("there", "b"), nil)
	other.want("ADDED there b")
}

// TestShardErrors checks that an invalid selector is a 500, as in kube-apiserver.
func TestShardErrors(t *testing.T) {
	t.Parallel()
	s := startSharded(t)
	for selector, want := range map[string]string{
		" ": "invalid shard selector: empty shard selector is not allowed; omit the parameter for unfiltered lists",
		"shardRange(object.metadata.name, '0x0', '0x1')":                                "invalid shard selector: unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace",
		third("uid", 0) + " || " + third("namespace", 1):                                "invalid shard selector: all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\"",
		third("uid", 0) + " && " + third("uid", 1):                                      `invalid shard selector: unsupported function "_&&_"; only shardRange() and || are allowed`,
		"shardRange(object.metadata.uid, '0x5555555555555555', '0x5555555555555555')":   "invalid shard selector: shard range start 0x5555555555555555 must be less than end 0x5555555555555555",
		"shardRange(object.metadata.uid, '0x10000000000000000', '0x10000000000000000')": "invalid shard selector: shard range start 0x10000000000000000 must be less than end 0x10000000000000000",
		"shardRange(object.metadata.uid, '0x5', '0x5555555555555555')":                  `invalid shard selector: hexStart must be a 0x-prefixed 16-digit hex value, got "0x5" (did you mean "0x0000000000000005"?)`,
	} {
		for _, target := range []string{all + "?", all + "?watch=1&"} {
			w := ask(t, s, http.MethodGet, target+shard(selector), "")
			var status metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || w.Code != 500 || status.Code != 500 ||
				status.Message != want || status.Reason != "" {
				t.Errorf("%s: %d %s", selector, w.Code, w.Body)
			}
		}
	}
	w := ask(t, s, http.MethodGet, all+"?fieldSelector=x%3Dy&"+shard("x"), "")
	if w.Code != 400 || !strings.Contains(w.Body.String(), "not a known field selector") {
		t.Errorf("with a field selector that is wrong: %d %s", w.Code, w.Body)
	}
}

// TestShardsOff checks that the parameter has no effect without the gate.
func TestShardsOff(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 6 {
		send(t, s, http.MethodPost, all, fmt.Sprintf(`{"metadata":{"name":"a%d"}}`, i), nil)
	}
	for _, selector := range []string{third("uid", 0), "x"} {
		var l list
		send(t, s, http.MethodGet, all+"?"+shard(selector), "", &l)
		if len(l.Items) != 6 || l.Metadata.ShardInfo != nil {
			t.Errorf("%s: %d objects, %+v", selector, len(l.Items), l.Metadata.ShardInfo)
		}
		w := watch(t, s, all+"?watch=1&"+shard(selector))
		for i := range 6 {
			w.want(fmt.Sprint("ADDED a", i))
		}
	}
}

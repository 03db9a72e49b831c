package watchcache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

func TestNewEntry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{"metadata":{}}`, `{"metadata":{"resourceVersion":"7"}}`},
		{`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","resourceVersion":"7"}}`},
		{`{"metadata":{"uid":"u"}}`, `{"metadata":{"resourceVersion":"7","uid":"u"}}`},
		{`{"a":1,"metadata":{"name":"a","uid":"u"},"spec":{"metadata":{"uid":"x"}}}`,
			`{"a":1,"metadata":{"name":"a","resourceVersion":"7","uid":"u"},"spec":{"metadata":{"uid":"x"}}}`},
		{`{"metadata":{"name":"a","selfLink":"s","uid":"u"}}`,
			`{"metadata":{"name":"a","resourceVersion":"7","selfLink":"s","uid":"u"}}`},
		// With a resourceVersion, of any kind.
		{`{"metadata":{"name":"a","resourceVersion":"123456","uid":"u"}}`,
			`{"metadata":{"name":"a","resourceVersion":"7","uid":"u"}}`},
		{`{"metadata":{"resourceVersion":null}}`, `{"metadata":{"resourceVersion":"7"}}`},
		{`{"metadata":{"resourceVersion":{"a":[1]},"uid":"u"}}`, `{"metadata":{"resourceVersion":"7","uid":"u"}}`},
		// As other writers leave it.
		{`{"metadata":{"name":"a"}}` + "\n", `{"metadata":{"name":"a","resourceVersion":"7"}}`},
		{`{"metadata":{"uid":"u","name":"a"},"kind":"K"}`,
			`{"kind":"K","metadata":{"name":"a","resourceVersion":"7","uid":"u"}}`},
		{` { "metadata" : { "uid" : "u" } } `, `{"metadata":{"resourceVersion":"7","uid":"u"}}`},
		{`{"metadata":{"name":"a","name":"b"}}`, `{"metadata":{"name":"b","resourceVersion":"7"}}`},
		{`{"metadata":{},"n":[1e3,12345678901234567890, 1.50]}`,
			`{"metadata":{"resourceVersion":"7"},"n":[1e3,12345678901234567890,1.50]}`},
		{`{"metadata":{"annotations":{"<":"é\u00e9\ud83d\ude00"}}}`,
			`{"metadata":{"annotations":{"<":"é\u00e9\ud83d\ude00"},"resourceVersion":"7"}}`},
		{`{"metadata":{"labels":null,"uid":7}}`, `{"metadata":{"labels":null,"resourceVersion":"7","uid":7}}`},
		// No object.
		{``, ``}, {`null`, ``}, {`[]`, ``}, {`{}`, ``}, {`{"metadata":null}`, ``}, {`{"metadata":[]}`, ``},
		{`{"metadata":{}`, ``},
		{`{"metadata":{}}x`, ``}, {"k8s\x00\n\x0c", ``}, {`{"metadata":{}}{}`, ``}, {"\x00{\"metadata\":{}}", ``},
		{strings.Repeat("[", 100000), ``}, {strings.Repeat(`{"a":`, 100000), ``},
	} {
		e, err := newEntry("ns/n", store.Record{Value: []byte(c.in), Revision: 7}, newInterner())
		if c.want == "" {
			if err == nil {
				t.Errorf("%.60q is taken for an object: %s", c.in, e.JSON())
			}
			continue
		}
		if err != nil || string(e.JSON()) != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.in, e.JSON(), err, c.want)
			continue
		}
		if got := WithRevision([]byte(c.in), 7); string(got) != c.want {
			t.Errorf("%s with a revision: %s", c.in, got)
		}
		if got := WithRevision(WithRevision([]byte(c.in), 99999), 7); string(got) != c.want {
			t.Errorf("%s with another revision: %s", c.in, got)
		}
		later := e.at(1234)
		if want := strings.Replace(c.want, `"resourceVersion":"7"`, `"resourceVersion":"1234"`,
			1); string(later.JSON()) != want || later.Revision != 1234 {
			t.Errorf("%s at another revision: %s", c.in, later.JSON())
		}
	}
}

func TestEntryFields(t *testing.T) {
	t.Parallel()
	in := newInterner()
	value := `{"apiVersion":"a.b/v1","metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","generation":12,"labels":{"a":"1","b":"x\"y","n":5},"name":"n","uid":"u-\u0031"},` +
		`"spec":{"a.b":"dot","bool":true,"empty":"","esc":"q\"\n","float":1.50,"int":42,"list":[{"x":"}"}],"nested":{"deep":{"er":"v"}},"null":null,"quoted\"key":"k"}}`
	e, err := newEntry("ns/n", store.Record{Value: []byte(value), Revision: 99999, Created: 5}, in)
	if err != nil {
		t.Fatal(err)
	}
	if e.Namespace != "ns" || e.Name != "n" || e.UID != "u-1" || e.APIVersion != "a.b/v1" || e.Generation != 12 ||
		!e.Deleting || e.Created != 5 ||
		!reflect.DeepEqual(e.Labels, map[string]string{"a": "1", "b": `x"y`}) {
		t.Errorf("%+v", e)
	}
	for range 2 { // the second time from the cache
		for path, want := range map[string]string{
			"metadata.name": "n", ".metadata.resourceVersion": "99999", "apiVersion": "a.b/v1", ".spec.int": "42",
			".spec.bool":  "true",
			".spec.float": "1.5", ".spec.empty": "", ".spec.esc": "q\"\n", ".spec.nested.deep.er": "v",
			`.spec.a\.b`: "dot", `.spec.quoted"key`: "k",
		} {
			if got, ok := e.Field(path); !ok || got != want {
				t.Errorf("%s: %q, %v", path, got, ok)
			}
		}
		for _, path := range []string{".spec.null", ".spec.nothing", ".spec.a", ".spec.int.x", ".spec.list.x", "x",
			".spec.z", ".status.x"} {
			if got, ok := e.Field(path); ok || got != "" {
				t.Errorf("%s: %q, %v", path, got, ok)
			}
		}
	}
	again, _ := newEntry("ns/m", store.Record{Value: []byte(value)}, in)
	if reflect.ValueOf(again.Labels).Pointer() != reflect.ValueOf(e.Labels).Pointer() {
		t.Error("equal labels are not shared")
	}
}

// FuzzScan checks that the scanner accepts the same inputs as encoding/json, and that an entry only adds a
// resourceVersion.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"apiVersion":"v1","metadata":{"labels":{"a":"b"},"name":"x","uid":"u"},"n":[1,-2.5e+3,true,null,"\u00e9\n"]}`,
		`{"metadata":{"z":1,"a":2}}`, ` {"metadata" : {}}`, `{"metadata":{"resourceVersion":"5"}}`, `{"a":01}`,
		`{"a":"\x"}`, "{\"a\":\"\t\"}",
		`[1,]`, `{"a":1,}`, `-`, `1.`, `1e`, `"\ud800"`, `{"metadata":{"\u0061":1,"b":2}}`,
		`{"metadata":{},"metadata":{"a":1}}`, `nul`, `{"":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := scan(data)
		if valid := json.Valid(data); valid != (err == nil) {
			t.Fatalf("valid %v, scan: %v", valid, err)
		}
		if err != nil {
			return
		}
		if l.canonical {
			var compact bytes.Buffer
			if json.Compact(&compact, data); !bytes.Equal(compact.Bytes(), data) {
				t.Fatalf("has whitespace: %q", data)
			}
		}
		e, err := newEntry("n", store.Record{Value: data, Revision: 314159}, newInterner())
		var want map[string]any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		_ = d.Decode(&want)
		metadata, ok := want["metadata"].(map[string]any)
		if ok != (err == nil) {
			t.Fatalf("metadata %v, entry: %v", ok, err)
		}
		if err != nil {
			return
		}
		metadata["resourceVersion"] = "314159"
		var got map[string]any
		d = json.NewDecoder(bytes.NewReader(e.JSON()))
		d.UseNumber()
		if err := d.Decode(&got); err != nil {
			t.Fatalf("%q: %v", e.JSON(), err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %q", data, e.JSON())
		}
		if again, err := scan(e.JSON()); err != nil || !again.canonical {
			t.Fatalf("%q is not canonical, %v", e.JSON(), err)
		}
		uid, _ := metadata["uid"].(string)
		if e.UID != uid {
			t.Fatalf("uid %q, want %q", e.UID, uid)
		}
		for name, v := range want {
			path := strings.ReplaceAll(name, ".", `\.`)
			if strings.Contains(name, `\`) || name == "" {
				continue
			}
			value, found := e.Field("." + path)
			switch v := v.(type) {
			case nil:
				if found {
					t.Fatalf("field %q: %q for null", name, value)
				}
			case string:
				if !found || value != v {
					t.Fatalf("field %q: %q, %v; want %q", name, value, found, v)
				}
			case json.Number:
				text := ""
				if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
					text = fmt.Sprint(n)
				} else {
					f, _ := v.Float64()
					text = fmt.Sprint(f)
				}
				if value != text {
					t.Fatalf("field %q: %q, want %q", name, value, text)
				}
			case bool:
				if value != fmt.Sprint(v) {
					t.Fatalf("field %q: %q", name, value)
				}
			}
		}
	})
}

// TestCacheDecoded checks that an entry's decoded object lasts until another entry replaces it.
func TestCacheDecoded(t *testing.T) {
	t.Parallel()
	v := New(nil, Options{})
	put := func(rev int64) *Entry {
		v.apply(store.WatchBatch{Revision: rev, Events: []store.Event{
			{Key: "a.b/cs/n/o", Value: []byte(`{"metadata":{}}`), Revision: rev},
		}})
		return v.Collection("a.b/cs").Snapshot().Get("n", "o")
	}
	e := put(1)
	if got := e.Decoded(); got != nil {
		t.Errorf("%v is kept", got)
	}
	e.CacheDecoded(7)
	if got := e.Decoded(); got != 7 {
		t.Errorf("%v is kept", got)
	}
	if now := put(2); now.Decoded() != nil || e.Decoded() != nil {
		t.Errorf("%v and %v are cached after a change", now.Decoded(), e.Decoded())
	}
}

func TestEncodedOnce(t *testing.T) {
	t.Parallel()
	e, err := newEntry("n", store.Record{Value: []byte(`{"metadata":{}}`)}, newInterner())
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no")
	if _, err := e.Encoded("v1", func() ([]byte, error) { return nil, failed }); err != failed {
		t.Errorf("error: %v", err)
	}
	made := make(chan struct{}, 100)
	results := make(chan []byte, 16)
	for range 16 {
		go func() {
			data, _ := e.Encoded("v1", func() ([]byte, error) {
				made <- struct{}{}
				return []byte("x"), nil
			})
			results <- data
		}()
	}
	for range 16 {
		if string(<-results) != "x" {
			t.Error("other data")
		}
	}
	if len(made) != 1 {
		t.Errorf("made %d times", len(made))
	}
	for i := range 100 { // no more forms are cached than the limit
		if data, _ := e.Encoded(i,
			func() ([]byte, error) { return fmt.Append(nil, i), nil }); string(data) != fmt.Sprint(i) {
			t.Errorf("form %d: %s", i, data)
		}
	}
	n := 0
	for s := e.encoded.head.Load(); s != nil; s = s.next {
		n++
	}
	if n > slotLimit {
		t.Errorf("%d forms are remembered", n)
	}
}

// TestKeysAscend checks that comparing raw keys agrees with comparing decoded keys, for all positions of escapes.
func TestKeysAscend(t *testing.T) {
	keys := []string{`a`, `ab`, `b`, `f:a`, `k:{\"name\":\"a\"}`, `k:{\"name\":\"b\"}`, `k:{\"name\":\"ab\"}`,
		`k:{\"name\":\"item-001\"}`,
		`k:{\"name\":\"item-002\"}`, `\u0041`, `\u00e9`, `\u00ea`, `a\nb`, `a\tb`, `a\\b`, `a"`[:1] + `\"`, `.`, `é`,
		`a\u0001`, `aA`}
	for _, a := range keys {
		for _, b := range keys {
			if got, want := keysAscend([]byte(a), []byte(b)), unquote([]byte(a)) < unquote([]byte(b)); got != want {
				t.Errorf("keysAscend(%q, %q) = %v, want %v", a, b, got, want)
			}
		}
	}
}

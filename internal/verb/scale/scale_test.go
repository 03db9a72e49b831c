package scale

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

func decode(t *testing.T, text string) object.Object {
	t.Helper()
	obj := object.Object{}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&obj); err != nil {
		t.Fatal(err)
	}
	return whole(obj).(object.Object)
}

// whole makes int64 of numbers.
func whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, _ := v.Int64()
		return n
	case object.Object:
		for k, e := range v {
			v[k] = whole(e)
		}
	}
	return v
}

func TestOf(t *testing.T) {
	p := &catalog.Scale{
		SpecReplicasPath: ".spec.n", StatusReplicasPath: ".status.n", LabelSelectorPath: ".status.selector",
	}
	for name, c := range map[string]struct {
		obj, want string
		found     bool
	}{
		"whole": {`{"metadata":{"name":"a","uid":"u"},"spec":{"n":3},"status":{"n":2,"selector":"a=b"}}`,
			`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a","uid":"u"},"spec":{"replicas":3},"status":{"replicas":2,"selector":"a=b"}}`,
			true},
		"without replicas": {`{"metadata":{"name":"a"},"status":{}}`,
			`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a"},"spec":{},"status":{"replicas":0}}`,
			false},
		"another type": {`{"spec":{"n":"3"}}`, "", false},
		"too many":     {`{"spec":{"n":3000000000}}`, "", false},
	} {
		got, found, err := Of(decode(t, c.obj), p)
		if err != nil || c.want == "" {
			if (err != nil) != (c.want == "") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if text, _ := json.Marshal(got); string(text) != c.want || found != c.found {
			t.Errorf("%s: %v %s, want %s", name, found, text, c.want)
		}
	}
}

func TestPut(t *testing.T) {
	p := &catalog.Scale{SpecReplicasPath: ".spec.n"}
	old := decode(t, `{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"n":3,"x":"y"}}`)
	for sent, want := range map[string]string{
		`{"spec":{"replicas":5}}`:                                    `{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"n":5,"x":"y"}}`,
		`{"metadata":{"resourceVersion":"6"},"spec":{"replicas":5}}`: `{"metadata":{"name":"a","resourceVersion":"6"},"spec":{"n":5,"x":"y"}}`,
		`{"spec":{}}`:              `{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"n":0,"x":"y"}}`,
		`{"spec":{"replicas":""}}`: ".spec.replicas accessor error",
	} {
		obj, err := Put(old, decode(t, sent), p)
		got, _ := json.Marshal(obj)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, want %s", sent, got, want)
		}
	}
	unset := decode(t, fmt.Sprintf(`{"spec":{"replicas":%d}}`, Unset))
	if _, err := Put(decode(t, `{"spec":{}}`), unset, p); err == nil ||
		err.Error() != `the spec replicas field ".spec.n" cannot be empty` {
		t.Errorf("nothing to set and nothing set: %v", err)
	}
}

package codec

import "testing"

func TestUntyped(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"},"spec":{"kind":"x"}}`:                     `{"metadata":{"name":"a"},"spec":{"kind":"x"}}`,
		`{"apiVersion":"v1","data":{"apiVersion":"\"kind\":","kind":"}"},"kind":"ConfigMap","metadata":{}}`:      `{"data":{"apiVersion":"\"kind\":","kind":"}"},"metadata":{}}`,
		`{"action":"a","addressType":[{}],"apiVersion":"v1","count":1,"kind":"Event","metadata":{},"type":null}`: `{"action":"a","addressType":[{}],"count":1,"metadata":{},"type":null}`,
		`{"metadata":{}}`:                             `{"metadata":{}}`,
		`{"apiVersion":"v1","kind":"A"}`:              `{}`,
		`{"a":1,"apiVersion":"v1","b":2,"kind":"A"}`:  `{"a":1,"b":2}`,
		`{"a":1,"apiVersion":"v1","kind":"A"}`:        `{"a":1}`,
		`{}`:                                          `{}`,
		`{"apiVersion":"v1","metadata":{},"spec":{}}`: `{"metadata":{},"spec":{}}`,
	} {
		if got := string(AppendUntyped(nil, []byte(doc))); got != want {
			t.Errorf("%s\nis %s\nnot %s", doc, got, want)
		}
	}
}

package rule

import "testing"

func TestStoredAs(t *testing.T) {
	t.Parallel()
	form := StoredAs("example.com", "v1", "v1beta1")
	const v1, beta = `{"apiVersion":"example.com/v1","kind":"A","metadata":{},"spec":{"apiVersion":"example.com/v1"}}`,
		`{"apiVersion":"example.com/v1beta1","kind":"A","metadata":{},"spec":{"apiVersion":"example.com/v1"}}`
	if got, err := form.Encode([]byte(v1)); err != nil || string(got) != beta {
		t.Errorf("stored: %v %s", err, got)
	}
	for _, c := range []struct{ stored, want string }{
		{beta, v1},
		{v1, v1}, // of an earlier release
		{`{"kind":"A","apiVersion":"example.com/v1beta1","metadata":{}}`,
			`{"kind":"A","apiVersion":"example.com/v1","metadata":{}}`},
		{`{"apiVersion":"example.com/v1","metadata":{},"spec":"example.com/v1beta1"}`,
			`{"apiVersion":"example.com/v1","metadata":{},"spec":"example.com/v1beta1"}`},
		{`nonsense`, `nonsense`},
	} {
		if got, err := form.Decode([]byte(c.stored)); err != nil || string(got) != c.want {
			t.Errorf("%s: %v %s", c.stored, err, got)
		}
	}
}

package script

import "testing"

// TestParse reads a script, and one that is none.
func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse("# about\nPUT /x?y\nA: b\n\n{}\n=> 200\nC: d\n\n{\"e\":1}\n---\n\nGET /z\n=> 404\n---\n")
	if err != nil || len(got) != 2 || got[0].line != 2 || got[1].line != 12 {
		t.Fatalf("%+v, %v", got, err)
	}
	if e := got[0]; e.method != "PUT" || e.target != "/x?y" || e.header.Get("A") != "b" || e.body != "{}" ||
		e.code != "200" ||
		e.wantedHeader.Get("C") != "d" || e.wantedBody != `{"e":1}` {
		t.Errorf("%+v", e)
	}
	if _, err := parse("GET /x\n"); err == nil {
		t.Error("a request without an answer was accepted")
	}
}

// TestCompare distinguishes output that a script allows from output that it rejects.
func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		got, want, diff string
	}{
		{`{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1}`, ""},
		{`{"a":1,"b":2}`, `{"a":1}`, ".b is there"},
		{`{"a":1,"b":2}`, `{"a":1,"...":""}`, ""},
		{`{"a":1}`, `{"a":1,"b":2,"...":""}`, ".b is missing"},
		{`{"a":null}`, `{"a":"$any"}`, ".a is missing or null"},
		{`{"a":"x","b":"x"}`, `[]`, " is map[a:x b:x], want []"},
		{`["x","x"]`, `["$V","$V"]`, ""},
		{`["x","y"]`, `["$V","$V"]`, `[1] is "y", want "x"`},
		{`["x","is x"]`, `["$V","is $V"]`, ""},
		{`{"a":1}`, `{"a":2}`, ".a is 1, want 2"},
	} {
		got, err := documents(c.got)
		if err != nil {
			t.Fatal(err)
		}
		want, err := documents(c.want)
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{T: t, vars: map[string]string{}}
		if diff := r.compare("", got[0], want[0]); diff != c.diff {
			t.Errorf("%s against %s: %q, want %q", c.got, c.want, diff, c.diff)
		}
	}
}

package read

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	want := continueToken{Revision: 7, Start: "default/a\x00"}
	got, err := parseToken(want.Encode())
	if err != nil || got.Revision != 7 || got.After() != "default/a" {
		t.Fatalf("got %+v, %v", got, err)
	}
	for name, c := range map[string]struct{ token, want string }{
		"not base64": {"%%%", "continue key is not valid: illegal base64"},
		"not JSON":   {encode("{"), "continue key is not valid: unexpected end"},
		"other version": {encode(`{"v":"meta.k8s.io/v2","rv":1,"start":"a"}`),
			"server does not recognize this encoded version meta.k8s.io/v2"},
		"no revision": {encode(`{"v":"meta.k8s.io/v1","start":"a"}`), "incorrect encoded start resourceVersion"},
		"no start":    {encode(`{"v":"meta.k8s.io/v1","rv":1}`), "encoded start key empty"},
		"out of the list": {encode(`{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/a"}`),
			"continue key is not valid: ../secrets/a"},
	} {
		_, err := parseToken(c.token)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "invalid continue token: ") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// FuzzParse: a token comes from the client and must neither panic nor lead out of its collection.
func FuzzParse(f *testing.F) {
	f.Add(continueToken{Revision: 7, Start: "default/a\x00"}.Encode())
	f.Add(encode(`{"v":"meta.k8s.io/v1","rv":-1,"start":"/../x"}`))
	f.Fuzz(func(t *testing.T, text string) {
		token, err := parseToken(text)
		if err == nil && (strings.Contains("/"+token.Start+"/", "/../") || token.Start == "") {
			t.Errorf("accepted %q: %+v", text, token)
		}
	})
}

package token

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		text := GenerateBootstrap()
		parsed, err := ParseBootstrap(text)
		if err != nil || parsed.String() != text || seen[text] {
			t.Fatalf("generated %q: %v", text, err)
		}
		seen[text] = true
		if id, err := ParseBootstrapID(text); err != nil || id != parsed.ID {
			t.Errorf("the ID of %q is %q: %v", text, id, err)
		}
	}
	for text, want := range map[string]string{
		"abcdef.0123456789abcdeF": `the bootstrap token "abcdef...." was not of the form`,
		"0123456789abcdef":        `the bootstrap token "..." was not of the form`,
		"":                        `was not of the form`,
	} {
		if _, err := ParseBootstrap(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, test := range []struct {
		token BootstrapToken
		want  string
	}{
		{BootstrapToken{Usages: usages, Groups: []string{"system:bootstrappers:a:b-c"}}, ""},
		{BootstrapToken{Usages: []string{"sing", "auth", "sing"}},
			"invalid bootstrap token usage string: auth,sing, valid usage options: signing,authentication"},
		{BootstrapToken{Groups: []string{"system:masters"}},
			`bootstrap group "system:masters" is invalid (must match \Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z)`},
	} {
		if err := test.token.Validate(); (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%+v: %v, want %s", test.token, err, test.want)
		}
	}
}

// TestSecrets checks that a secret preserves the fields of a token.
func TestSecrets(t *testing.T) {
	t.Parallel()
	want := BootstrapToken{
		ID: "abcdef", Secret: "0123456789abcdef", Description: "rack 4", Usages: []string{"authentication"},
		Groups: []string{"system:bootstrappers:a", "system:bootstrappers:b"}, Expires: time.Unix(2e9, 0).UTC(),
	}
	got, err := BootstrapOf(want.AsSecret())
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if err != nil || string(a) != string(b) {
		t.Errorf("%v\n got %s\nwant %s", err, a, b)
	}
	s := want.AsSecret()
	s.Name = "bootstrap-token-zzzzzz"
	if _, err := BootstrapOf(s); err == nil || strings.Contains(err.Error(), want.Secret) {
		t.Errorf("a secret of another name: %v", err)
	}
}

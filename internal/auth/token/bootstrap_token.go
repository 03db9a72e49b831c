package token

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// usages are the possible usages of tokens, in Kubernetes' order.
var usages = []string{"signing", "authentication"}

// Patterns of bootstrap tokens, their IDs and groups, as in Kubernetes' errors.
const (
	BootstrapPattern   = `\A([a-z0-9]{6})\.([a-z0-9]{16})\z`
	BootstrapIDPattern = `\A([a-z0-9]{6})\z`
	groupPattern       = `\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`
)

var (
	tokens = regexp.MustCompile(BootstrapPattern)
	ids    = regexp.MustCompile(BootstrapIDPattern)
	groups = regexp.MustCompile(groupPattern)
)

// BootstrapToken is a bootstrap token. Its text is ID.Secret; the ID is no secret.
type BootstrapToken struct {
	ID, Secret  string
	Description string
	// Expires is zero for a token that does not.
	Expires time.Time
	// Usages contains signing, authentication, or both.
	Usages []string
	// Groups lists the groups of the token's user, besides bootstrappers.
	Groups []string
}

// letters are the characters of tokens.
const letters = "0123456789abcdefghijklmnopqrstuvwxyz"

// GenerateBootstrap returns the text of a new token.
func GenerateBootstrap() string {
	text := make([]byte, 0, 6+1+16)
	for len(text) < cap(text) {
		var b [1]byte
		_, _ = rand.Read(b[:]) // never fails
		switch {
		case len(text) == 6:
			text = append(text, '.')
		case int(b[0]) < len(letters)*7: // 252: each letter corresponds to seven bytes
			text = append(text, letters[int(b[0])%len(letters)])
		}
	}
	return string(text)
}

// ParseBootstrap returns the token of a text.
func ParseBootstrap(text string) (BootstrapToken, error) {
	parts := tokens.FindStringSubmatch(text)
	if parts == nil {
		return BootstrapToken{}, fmt.Errorf("the bootstrap token %q was not of the form %q", redact(text), BootstrapPattern)
	}
	return BootstrapToken{ID: parts[1], Secret: parts[2]}, nil
}

// redact removes possible secrets from errors.
func redact(text string) string {
	id, _, found := strings.Cut(text, ".")
	if !found || !ids.MatchString(id) {
		return "..."
	}
	return id + "...."
}

// ParseBootstrapID returns the ID in an ID or in the text of a token.
func ParseBootstrapID(text string) (string, error) {
	if ids.MatchString(text) {
		return text, nil
	}
	t, err := ParseBootstrap(text)
	if err != nil {
		return "", fmt.Errorf("given token didn't match pattern %q or %q", BootstrapPattern, BootstrapIDPattern)
	}
	return t.ID, nil
}

// bootstrappers is the group of all users with a bootstrap token.
const bootstrappers = "system:bootstrappers"

// Validate returns the errors in usages and groups.
func (t BootstrapToken) Validate() error {
	var wrong []string
	for _, u := range t.Usages {
		if !slices.Contains(usages, u) {
			wrong = append(wrong, u)
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("invalid bootstrap token usage string: %s, valid usage options: %s",
			strings.Join(slices.Compact(wrong), ","), strings.Join(usages, ","))
	}
	for _, g := range t.Groups {
		if !groups.MatchString(g) {
			return fmt.Errorf("bootstrap group %q is invalid (must match %s)", g, groupPattern)
		}
	}
	return nil
}

// String returns the text of the token, which is secret.
func (t BootstrapToken) String() string { return t.ID + "." + t.Secret }

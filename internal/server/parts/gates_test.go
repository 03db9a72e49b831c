package parts

import (
	"slices"
	"testing"

	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// TestAuthorizationGates checks that feature gates that are on by default have an effect when they are off, and that an
// emulated older release lacks the features.
func TestAuthorizationGates(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, test := range []struct {
		gate                     *bool
		version                  string
		constrained, claims, any bool
	}{
		{nil, "1.37", true, true, false},
		{nil, "1.36", true, true, false},
		{&no, "1.36", false, false, true},
		{nil, "1.35", false, false, false},
		{&yes, "1.35", true, true, false},
	} {
		c := config.WithDefaults(config.Config{
			Emulation: config.Emulation{Version: []string{test.version}},
			Authorization: config.Authorization{
				ConstrainedImpersonation: test.gate, NodeAudienceRestriction: test.gate,
				ClaimStatusAuthorization: test.gate,
			},
		})
		claims := slices.ContainsFunc(Of(&c, ""), func(p part.Part) bool { return p.Name == "status of claims" })
		constrained, anyAudience := *c.Authorization.ConstrainedImpersonation, pluginSettings(&c).AnyAudience
		if constrained != test.constrained || claims != test.claims || anyAudience != test.any {
			t.Errorf("%+v: constrained %v, claims %v, any audience %v", test, constrained, claims, anyAudience)
		}
	}
}

package parts

import (
	"log/slog"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/version"
)

// TestEmulationWithoutMutatingPolicies checks that a release without MutatingAdmissionPolicies ignores policies stored
// by a newer server, unless the configuration enables a version of them.
func TestEmulationWithoutMutatingPolicies(t *testing.T) {
	t.Parallel()
	const beta = "admissionregistration.k8s.io/v1beta1"
	tests := []struct {
		version, requested string
		want               bool
	}{{"1.37", "", true}, {"1.36", "", true}, {"1.35", "", false}, {"1.35", beta, true}, {"1.34", beta, true}}
	for _, test := range tests {
		c := &config.Config{Emulation: config.Emulation{Version: []string{test.version}}}
		if test.requested != "" {
			c.API.RuntimeConfig = map[string]string{test.requested: "true"}
		}
		h := &part.Host{Log: slog.New(slog.DiscardHandler)}
		h.Catalog = catalog.New(builtinKinds(c).Resources(h, nil)...)
		if emulation := version.Emulated(config.Emulated(&c.Emulation)); emulation.Version != test.version {
			t.Errorf("%s: shown as %v", test.version, emulation)
		}
		if got := obeysMutatingPolicies(c, h); got != test.want {
			t.Errorf("%s with %q: %v", test.version, test.requested, got)
		}
	}
}

package rbac

import (
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// Writes of roles and bindings say that they have no effect, until RBAC is enforced.
func TestWritesWarn(t *testing.T) {
	t.Parallel()
	for _, k := range []rule.Kind{roleKind(), roleBindingKind(), clusterRoleKind(), clusterRoleBindingKind()} {
		if k.Strategy.Warnings == nil {
			t.Errorf("%s: no warnings", k.Kind)
			continue
		}
		if texts := k.Strategy.Warnings(nil, nil, ""); len(texts) != 1 ||
			!strings.Contains(texts[0], "RBAC is not enforced") {
			t.Errorf("%s: %q", k.Kind, texts)
		}
	}
}

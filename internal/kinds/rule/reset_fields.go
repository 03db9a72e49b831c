package rule

import (
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// resetFields returns the fields that the kind's endpoints let their callers change: the object's own all except the
// status, /status all except the spec. Exceptions are in the kind's entry.
func (k Kind) resetFields() map[string]catalog.ResetFields {
	out := map[string]catalog.ResetFields{}
	switch {
	case k.StatusOnly:
		out[""], out["status"] = Except("status"), Except("metadata", "spec")
	case k.Status:
		out[""], out["status"] = Except("status"), Except("spec")
	}
	for name, reach := range k.ResetFields {
		out[name] = reach
	}
	return out
}

// Except returns the ResetFields of an endpoint that cannot change the fields at the paths, which have dots.
func Except(paths ...string) catalog.ResetFields { return catalog.ResetFields{Except: split(paths)} }

// Only returns the ResetFields of an endpoint that can change only the fields at the paths, which have dots.
func Only(paths ...string) catalog.ResetFields { return catalog.ResetFields{Only: split(paths)} }

func split(paths []string) [][]string {
	out := make([][]string, len(paths))
	for i, p := range paths {
		out[i] = strings.Split(p, ".")
	}
	return out
}

package kinds

import (
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// reach returns what the kind's endpoints let their callers change: the object's own all but the status, /status all
// but the spec. What differs stands in the kind's entry.
func (k kind) reach() map[string]catalog.ResetFields {
	out := map[string]catalog.ResetFields{}
	switch {
	case k.statusOnly:
		out[""], out["status"] = except("status"), except("metadata", "spec")
	case k.status:
		out[""], out["status"] = except("status"), except("spec")
	}
	for name, reach := range k.reaches {
		out[name] = reach
	}
	return out
}

// except and only make a Reach of paths with dots.
func except(paths ...string) catalog.ResetFields { return catalog.ResetFields{Except: split(paths)} }
func only(paths ...string) catalog.ResetFields   { return catalog.ResetFields{Only: split(paths)} }

func split(paths []string) [][]string {
	out := make([][]string, len(paths))
	for i, p := range paths {
		out[i] = strings.Split(p, ".")
	}
	return out
}

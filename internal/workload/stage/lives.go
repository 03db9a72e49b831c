package stage

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lives groups Stages by the kind of their objects, in the given order. refused holds the errors of the Stages that
// were left out, by name.
func Lives(stages []*Stage) (lives map[schema.GroupKind]Life, refused map[string]error) {
	lives, refused = map[schema.GroupKind]Life{}, map[string]error{}
	for _, one := range stages {
		kind := one.Of.GroupKind()
		switch others := lives[kind]; {
		case kind.Kind == "Event" && (kind.Group == "" || kind.Group == "events.k8s.io"):
			refused[one.Name] = errors.New("no Stage can apply to events, which report its errors")
		case len(others) > 0 && others[0].Of.Version != one.Of.Version:
			refused[one.Name] = fmt.Errorf("it is about version %s of %s, and stage %s about %s: all must be about one",
				one.Of.Version, kind, others[0].Name, others[0].Of.Version)
		case one.Selects():
			lives[kind] = append(others, one)
		}
	}
	return lives, refused
}

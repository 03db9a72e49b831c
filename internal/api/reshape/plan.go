package reshape

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// maxStash bounds the annotations of an object with a stash, as Kubernetes bounds all annotations.
const maxStash = 256 << 10

// Plan converts between the versions of a kind.
type Plan struct {
	schemas  map[string]*schema.Schema
	versions []string // the names of the schemas, sorted
	routes   map[[2]string][]hop
	steps    []step
}

// step is a compiled Step.
type step struct {
	names [2]string
	level *level
}

// hop is a step in one direction.
type hop struct {
	*step
	d       direction
	schemas [2]*schema.Schema
}

// Problems is the error of New: all problems of a configuration.
type Problems []string

// Error returns the problems, joined.
func (p Problems) Error() string { return strings.Join(p, "; ") }

// New compiles a configuration for the schemas of all versions, by name. The error is Problems.
func New(c *Config, schemas map[string]*schema.Schema) (*Plan, error) {
	p := &Plan{schemas: schemas, versions: slices.Sorted(maps.Keys(schemas)), routes: map[[2]string][]hop{}}
	if problems := p.link(c); len(problems) > 0 {
		return nil, problems
	}
	var problems Problems
	for i, s := range c.Steps {
		k := &compiler{names: [2]string{s.From, s.To}}
		for _, n := range []string{s.From, s.To} {
			if !plain(schemas[n].Root()) {
				k.problem(fmt.Sprintf("steps[%d]", i), "the schema of version "+n+" must be an object that declares its fields")
			}
		}
		if len(k.problems) == 0 {
			l := k.level(schemas[s.From].Root(), schemas[s.To].Root(), s.Rules, "", true)
			p.steps = append(p.steps, step{k.names, l})
		}
		for _, text := range k.problems {
			problems = append(problems, fmt.Sprintf("from %s to %s: %s", s.From, s.To, text))
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	p.route()
	return p, nil
}

// link checks that the steps connect all versions, in one way only.
func (p *Plan) link(c *Config) (problems Problems) {
	group := map[string]string{} // of connected versions
	of := func(name string) string {
		for group[name] != name {
			name = group[name]
		}
		return name
	}
	for name := range p.schemas {
		group[name] = name
	}
	for i, s := range c.Steps {
		for _, name := range []string{s.From, s.To} {
			if p.schemas[name] == nil {
				problems = append(problems, fmt.Sprintf("steps[%d]: the definition has no version %s with a schema", i, name))
			}
		}
		if problems != nil {
			continue
		}
		if of(s.From) == of(s.To) {
			problems = append(problems, fmt.Sprintf("steps[%d]: other steps lead from %s to %s already: the steps form a cycle, "+
				"remove one", i, s.From, s.To))
			continue
		}
		group[of(s.From)] = of(s.To)
	}
	if problems != nil {
		return problems
	}
	for _, name := range p.versions {
		if of(name) != of(c.Steps[0].From) {
			problems = append(problems, fmt.Sprintf("no step leads to version %s: add one, without rules if it has the "+
				"fields of another version", name))
		}
	}
	return problems
}

// route finds the way between each pair of versions. The steps form a tree, so there is one.
func (p *Plan) route() {
	for from := range p.schemas {
		p.routes[[2]string{from, from}] = nil
		for reached := []string{from}; len(reached) > 0; reached = reached[1:] {
			at := reached[0]
			for i := range p.steps {
				s := &p.steps[i]
				for d, next := range [2]string{s.names[second], s.names[first]} {
					ends := [2]string{from, next}
					if _, known := p.routes[ends]; known || s.names[d] != at {
						continue
					}
					h := hop{s, side(d), [2]*schema.Schema{p.schemas[s.names[first]], p.schemas[s.names[second]]}}
					p.routes[ends] = append(slices.Clone(p.routes[[2]string{from, at}]), h)
					reached = append(reached, next)
				}
			}
		}
	}
}

// Prune removes the fields from obj that its version does not declare, in place. A server does so before conversions.
func (p *Plan) Prune(obj object.Object, version string) error {
	s := p.schemas[version]
	if s == nil {
		return fmt.Errorf("the definition has no version %s with a schema", version)
	}
	return s.NormalizeConverted(obj)
}

// Convert converts obj from one version to another, in place, except for its apiVersion. After an error obj is partly
// converted.
func (p *Plan) Convert(obj object.Object, from, to string) error {
	route, ok := p.routes[[2]string{from, to}]
	if !ok {
		return fmt.Errorf("the definition has no conversion from %s to %s", from, to)
	}
	if len(route) == 0 {
		return nil
	}
	stash := p.openStash(obj)
	left := maxAdded
	for _, h := range route {
		source, target := h.names[h.d], h.names[1-h.d]
		r := &run{schemas: h.schemas, left: left}
		stashed, _ := stash[target].(object.Object)
		_, lost, err := h.level.shape(r, h.d, obj, stashed)
		if err != nil {
			return fmt.Errorf("from %s to %s: %w", source, target, err)
		}
		left = r.left
		delete(stash, target)
		delete(stash, source)
		if len(lost) > 0 {
			if stash == nil {
				stash = object.Object{}
			}
			stash[source] = lost
		}
	}
	return closeStash(obj, stash)
}

// openStash removes the stash from obj and returns it, without versions that the definition lacks.
func (p *Plan) openStash(obj object.Object) object.Object {
	annotations := object.Map(obj, "metadata", "annotations")
	text, ok := annotations[Stash].(string)
	if !ok {
		return nil
	}
	removeAnnotation(obj, annotations)
	stash, err := readStash(text)
	if err != nil {
		return nil
	}
	maps.DeleteFunc(stash, func(name string, _ any) bool { return p.schemas[name] == nil })
	return stash
}

func removeAnnotation(obj, annotations object.Object) {
	delete(annotations, Stash)
	if len(annotations) == 0 {
		delete(object.Map(obj, "metadata"), "annotations")
	}
}

var errStash = errors.New("is not a stash that a conversion wrote: remove the annotation")

// readStash decodes a stash.
func readStash(text string) (object.Object, error) {
	if len(text) > maxStash {
		return nil, errStash
	}
	v, err := codec.DecodeJSON([]byte(text))
	if err != nil {
		return nil, errStash
	}
	stash, ok := v.(object.Object)
	if !ok {
		return nil, errStash
	}
	return stash, nil
}

// closeStash adds the stash to obj.
func closeStash(obj, stash object.Object) error {
	if len(stash) == 0 {
		return nil
	}
	annotations := object.Child(object.Meta(obj), "annotations")
	text := string(codec.AppendJSON(nil, stash))
	size := len(Stash) + len(text)
	for name, value := range annotations {
		s, _ := value.(string)
		size += len(name) + len(s)
	}
	if size > maxStash {
		return fmt.Errorf("the values without a field in the new version take the annotations to %d bytes, at most %d are "+
			"allowed: add fields or rules for them, or read the object in another version", size, maxStash)
	}
	annotations[Stash] = text
	return nil
}

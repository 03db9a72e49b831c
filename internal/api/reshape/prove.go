package reshape

import (
	"context"
	"fmt"
	"slices"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Proof is the result of conversions on trial.
type Proof struct {
	// Objects and Conversions count the objects and their round trips to another version.
	Objects, Conversions int
	// Unproven lists the versions for which no valid object could be generated.
	Unproven []string
}

// Prove converts count generated objects of each version to every neighbour and back. The error describes the first
// object that becomes invalid or does not return as it was; it is ctx's error if ctx ends.
func (p *Plan) Prove(ctx context.Context, count int) (proof Proof, err error) {
	for i := range p.steps {
		for d, from := range p.steps[i].names {
			g, made := NewGenerator(uint64(i)), 0
			to := p.steps[i].names[1-d]
			for range count {
				if ctx.Err() != nil {
					return proof, ctx.Err()
				}
				obj := g.Object(p.schemas[from])
				if obj == nil && made == 0 {
					break // a hostile schema must not cost count attempts
				}
				if obj == nil {
					continue
				}
				made++
				if err := p.Trip(obj, from, to); err != nil {
					return proof, fmt.Errorf("generated object %s: %w", shorten(obj), err)
				}
			}
			proof.Objects, proof.Conversions = proof.Objects+made, proof.Conversions+made
			if made == 0 && !slices.Contains(proof.Unproven, from) {
				proof.Unproven = append(proof.Unproven, from)
			}
		}
	}
	return proof, nil
}

// Examples converts the examples of a configuration. The error names the first one with another result.
func (p *Plan) Examples(c *Config) error {
	for i, e := range c.Examples {
		at := fmt.Sprintf("examples[%d]", i)
		for _, name := range []string{e.From, e.To} {
			if p.schemas[name] == nil {
				return problem(at, fmt.Sprintf("the definition has no version %s with a schema", name))
			}
		}
		got := codec.CloneObject(e.Object)
		if err := p.Convert(got, e.From, e.To); err != nil {
			return problem(at, err.Error())
		}
		got["apiVersion"] = e.Equal["apiVersion"]
		if got["apiVersion"] == nil {
			delete(got, "apiVersion")
		}
		if !codec.Equal(any(got), any(e.Equal)) {
			return problem(at, "the result is "+shorten(got))
		}
		if err := p.Trip(codec.CloneObject(e.Object), e.From, e.To); err != nil {
			return problem(at, err.Error())
		}
	}
	return nil
}

// Trip converts obj, a valid object of version from, to another version and back. The error describes the first
// difference: an object that is invalid in the other version, or one that does not return. If rules give up values on
// the way, a second trip must return the result of the first one. obj is not changed.
func (p *Plan) Trip(obj object.Object, from, to string) error {
	there, returned, err := p.trip(obj, from, to)
	if err == nil && p.gives(from, to) {
		obj = returned
		there, returned, err = p.trip(obj, from, to)
	}
	if err == nil && !codec.Equal(any(returned), any(obj)) {
		return fmt.Errorf("becomes %s in %s, and then %s", shorten(there), to, shorten(returned))
	}
	return err
}

func (p *Plan) trip(obj object.Object, from, to string) (there, returned object.Object, err error) {
	there = codec.CloneObject(obj)
	if err := p.Convert(there, from, to); err != nil {
		return nil, nil, err
	}
	if err := p.schemas[to].NormalizeConverted(there); err != nil {
		return nil, nil, err
	}
	if s := p.schemas[to]; !s.Accepts(s.Root(), there) {
		return nil, nil, invalid(s, there, to)
	}
	returned = codec.CloneObject(there)
	if err := p.Convert(returned, to, from); err != nil {
		return nil, nil, fmt.Errorf("becomes %s in %s, and then: %w", shorten(there), to, err)
	}
	return there, returned, p.schemas[from].NormalizeConverted(returned)
}

// gives reports whether the rules between two versions give up values.
func (p *Plan) gives(from, to string) bool {
	for _, h := range p.routes[[2]string{from, to}] {
		if h.level.gives(first) || h.level.gives(second) {
			return true
		}
	}
	return false
}

// gives reports whether a rule gives up values.
func (l *level) gives(d direction) bool {
	for _, t := range l.transfers {
		if t.lossy && len(t.slots[d]) > 0 {
			return true
		}
	}
	for _, n := range l.nests {
		if gives(n.into, d) {
			return true
		}
	}
	return false
}

func gives(s shaper, d direction) bool {
	switch s := s.(type) {
	case *level:
		return s.gives(d)
	case *listShape:
		return gives(s.into, d)
	case *mapShape:
		return gives(s.into, d)
	}
	return false
}

// invalid describes an object that a conversion made invalid.
func invalid(s *schema.Schema, obj object.Object, version string) error {
	text := ""
	if errs := s.Validate(obj, nil); len(errs) > 0 {
		text = ": " + errs[0].Error()
	}
	return fmt.Errorf("becomes an invalid object of %s%s", version, text)
}

// shorten returns an object as text for an error.
func shorten(obj object.Object) string {
	const most = 400
	text := string(codec.AppendJSON(nil, obj))
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

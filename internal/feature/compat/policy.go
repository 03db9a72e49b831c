package compat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Level is the weight of a finding.
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Off     Level = "off"
)

// UnmarshalJSON accepts false for off, which is a boolean in YAML. The YAML library passes it on as a string.
func (l *Level) UnmarshalJSON(text []byte) error {
	if strings.Trim(string(text), `"`) == "false" {
		*l = Off
		return nil
	}
	return json.Unmarshal(text, (*string)(l))
}

// defaults are the levels of the classes that are not errors.
var defaults = map[Class]Level{
	Default: Warning, EnumAddition: Warning, NullableAddition: Warning, RequiredWithDefault: Warning,
	ServedVersionRemoval: Warning, SelectableFields: Warning,
	Description: Off, Loosening: Off,
}

// Classes are all classes, sorted.
func Classes() []Class {
	all := []Class{
		Scope, StoredVersionRemoval, ExistingFieldRemoval, DefinitionRemoval, Names, ServedVersionRemoval, Subresources,
		SelectableFields, Type, Enum, Default, Required, Description, Minimum, Maximum, MinItems, MaxItems, MinLength,
		MaxLength, MinProperties, MaxProperties, Pattern, Format, MultipleOf, UniqueItems, Nullable, Composition,
		Validations, ListType, MapType, EmbeddedResource, PreserveUnknownFields, AdditionalProperties, EnumAddition,
		NullableAddition, RequiredWithDefault, Loosening, InvalidObjects, PrunedObjects,
	}
	slices.Sort(all)
	return all
}

// Policy gives findings their levels.
type Policy struct {
	// Classes are the levels that differ from the default ones.
	Classes map[Class]Level `json:"classes,omitempty"`
	// Exemptions are findings that were accepted.
	Exemptions []Exemption `json:"exemptions,omitempty"`
}

// Exemption accepts the findings that match all of its fields. An empty field matches everything.
type Exemption struct {
	Definition string `json:"definition,omitempty"`
	Class      Class  `json:"class"`
	Version    string `json:"version,omitempty"`
	Path       string `json:"path,omitempty"`
	// Reason is required.
	Reason string `json:"reason"`
}

// ReadPolicy reads a policy from YAML or JSON. It refuses unknown fields, classes and levels.
func ReadPolicy(text []byte) (*Policy, error) {
	p := &Policy{}
	if err := yaml.UnmarshalStrict(text, p); err != nil {
		return nil, err
	}
	return p, p.check()
}

// Over returns the policy with the levels and exemptions of below where p has none. The exemptions of p come first.
func (p *Policy) Over(below *Policy) *Policy {
	out := &Policy{Classes: maps.Clone(below.Classes), Exemptions: slices.Concat(p.Exemptions, below.Exemptions)}
	if out.Classes == nil {
		out.Classes = map[Class]Level{}
	}
	maps.Copy(out.Classes, p.Classes)
	return out
}

// check returns the errors in the classes, levels and exemptions.
func (p *Policy) check() error {
	var errs []error
	for _, class := range slices.Sorted(maps.Keys(p.Classes)) {
		errs = append(errs, CheckClass(class), CheckLevel(p.Classes[class]))
	}
	for i, e := range p.Exemptions {
		at := fmt.Sprintf("exemptions[%d]", i)
		if err := CheckClass(e.Class); err != nil {
			errs = append(errs, fmt.Errorf("%s.class: %w", at, err))
		}
		if strings.TrimSpace(e.Reason) == "" {
			errs = append(errs, fmt.Errorf("%s.reason is missing: write why the finding is accepted", at))
		}
	}
	return errors.Join(errs...)
}

// CheckClass returns an error unless the class exists.
func CheckClass(class Class) error {
	if slices.Contains(Classes(), class) {
		return nil
	}
	return fmt.Errorf("there is no class %q", class)
}

// CheckLevel returns an error unless the level exists.
func CheckLevel(level Level) error {
	if level == Error || level == Warning || level == Off {
		return nil
	}
	return fmt.Errorf("there is no level %q: use error, warning or off", level)
}

// DefaultLevel returns the level of a class without a policy.
func DefaultLevel(class Class) Level {
	if level, ok := defaults[class]; ok {
		return level
	}
	return Error
}

// Level returns the level of a finding of a definition. The second result is the exemption that turns it off, or -1.
func (p *Policy) Level(definition string, f *Finding) (Level, int) {
	level, ok := p.Classes[f.Class]
	if !ok {
		level = DefaultLevel(f.Class)
	}
	if level == Off {
		return Off, -1
	}
	for i := range p.Exemptions {
		if p.Exemptions[i].matches(definition, f) {
			return Off, i
		}
	}
	return level, -1
}

func (e *Exemption) matches(definition string, f *Finding) bool {
	matches := func(want, have string) bool { return want == "" || want == have }
	return e.Class == f.Class && matches(e.Definition, definition) && matches(e.Version, f.Version) &&
		matches(e.Path, f.Path)
}

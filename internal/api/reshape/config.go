package reshape

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Annotation is the annotation of a definition with the configuration, YAML or JSON.
const Annotation = "bowsprit.dev/conversion"

// Stash is the annotation of an object with the values that its version has no field for: by version, then by place, a
// list with the value or without one.
const Stash = "bowsprit.dev/conversion-stash"

// Bounds of a configuration.
const (
	maxConfig = 256 << 10 // bytes, as for all annotations of an object
	maxSteps  = 128
	maxRules  = 2048 // of all steps together
	maxDepth  = 8    // of rules within rules
	maxPlaces = 16   // of one rule and side
	maxValue  = 4 << 10
)

// Config is a decoded configuration: the value of the annotation Annotation.
type Config struct {
	Steps    []Step
	Examples []Example
}

// Step has the rules between two versions. They apply in both directions.
type Step struct {
	From, To string // names of versions
	Rules    []Rule
}

// Rule converts the values at some places of one version to the values at some places of another.
type Rule struct {
	Verb     string
	From, To []Path // To is From if the configuration has no "to"
	Rules    []Rule // of forEach and move
	params   map[string]any
	at       string // the rule's place in the configuration, "steps[0].rules[2]"
}

// Example is an object of one version and the expected object of another.
type Example struct {
	From, To      string
	Object, Equal object.Object
}

// Parse decodes a configuration, YAML or JSON. Errors name the place in the configuration.
func Parse(text string) (*Config, error) {
	if len(text) > maxConfig {
		return nil, fmt.Errorf("the configuration has %d bytes, at most %d are allowed", len(text), maxConfig)
	}
	raw, err := codec.FromYAML([]byte(text))
	if err != nil {
		return nil, err
	}
	if len(raw) > 4*maxConfig {
		return nil, errors.New("the configuration is too large after its YAML aliases are expanded")
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	return Decode(v)
}

// Decode is Parse for decoded JSON.
func Decode(v any) (*Config, error) {
	p := parser{}
	m, err := p.object(v, "", "steps", "examples")
	if err != nil {
		return nil, err
	}
	c := &Config{}
	if c.Steps, err = p.steps(m["steps"]); err != nil {
		return nil, err
	}
	c.Examples, err = p.examples(m["examples"])
	return c, err
}

// parser counts the rules of a configuration.
type parser struct{ rules int }

// object returns v as an object with no other fields than the named ones.
func (p *parser) object(v any, at string, names ...string) (object.Object, error) {
	m, ok := v.(object.Object)
	if !ok {
		return nil, problem(at, "must be an object")
	}
	for _, name := range object.Keys(m) {
		if !slices.Contains(names, name) {
			return nil, problem(at, fmt.Sprintf("unknown field %q, known are %s", name, strings.Join(names, ", ")))
		}
	}
	return m, nil
}

// problem returns an error at a place of the configuration.
func problem(at, text string) error {
	if at == "" {
		return errors.New(text)
	}
	return errors.New(at + ": " + text)
}

func (p *parser) steps(v any) (out []Step, err error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, problem("steps", "must be a list with at least one step between two versions")
	}
	if len(list) > maxSteps {
		return nil, problem("steps", fmt.Sprintf("has %d steps, at most %d are allowed", len(list), maxSteps))
	}
	for i, item := range list {
		at := fmt.Sprintf("steps[%d]", i)
		m, err := p.object(item, at, "from", "to", "rules")
		if err != nil {
			return nil, err
		}
		s := Step{From: object.String(m, "from"), To: object.String(m, "to")}
		if s.From == "" || s.To == "" || s.From == s.To {
			return nil, problem(at, "from and to must name two versions")
		}
		if s.Rules, err = p.ruleList(m["rules"], at+".rules", 1); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// ruleList decodes a list of rules; nil has none.
func (p *parser) ruleList(v any, at string, depth int) (out []Rule, err error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, problem(at, "must be a list of rules")
	}
	if depth > maxDepth {
		return nil, problem(at, fmt.Sprintf("rules are nested more than %d deep", maxDepth))
	}
	if p.rules += len(list); p.rules > maxRules {
		return nil, problem(at, fmt.Sprintf("more than %d rules", maxRules))
	}
	for i, item := range list {
		r, err := p.rule(item, fmt.Sprintf("%s[%d]", at, i), depth)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// rule decodes one rule: a verb with its places, "to" and the parameters of the verb.
func (p *parser) rule(v any, at string, depth int) (r Rule, err error) {
	m, ok := v.(object.Object)
	if !ok {
		return r, problem(at, "must be an object")
	}
	r.at = at
	for _, name := range object.Keys(m) {
		if verbs[name] == nil {
			continue
		}
		if r.Verb != "" {
			return r, problem(at, fmt.Sprintf("has two verbs, %s and %s: write two rules", r.Verb, name))
		}
		r.Verb = name
	}
	if r.Verb == "" {
		return r, problem(at, "has no verb, known are "+strings.Join(verbNames(), ", "))
	}
	of := verbs[r.Verb]
	if m, err = p.object(m, at, append([]string{r.Verb, "to"}, of.params...)...); err != nil {
		return r, err
	}
	if r.From, err = paths(m[r.Verb], at+"."+r.Verb); err != nil {
		return r, err
	}
	r.To = r.From
	if m["to"] != nil {
		if r.To, err = paths(m["to"], at+".to"); err != nil {
			return r, err
		}
	}
	if !of.fits(len(r.From), len(r.To)) {
		return r, problem(at, of.wants)
	}
	r.params = m
	r.Rules, err = p.ruleList(m["rules"], at+".rules", depth+1)
	return r, err
}

// paths decodes one path or a list of paths.
func paths(v any, at string) (out []Path, err error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 || len(list) > maxPlaces {
		return nil, problem(at, fmt.Sprintf("must name 1 to %d fields", maxPlaces))
	}
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return nil, problem(at, "must be a path such as spec.replicas")
		}
		path, err := ParsePath(text)
		if err != nil {
			return nil, problem(at, err.Error())
		}
		out = append(out, path)
	}
	return out, nil
}

func (p *parser) examples(v any) (out []Example, err error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, problem("examples", "must be a list")
	}
	for i, item := range list {
		at := fmt.Sprintf("examples[%d]", i)
		m, err := p.object(item, at, "from", "to", "object", "equals")
		if err != nil {
			return nil, err
		}
		e := Example{From: object.String(m, "from"), To: object.String(m, "to")}
		e.Object, e.Equal = object.Map(m, "object"), object.Map(m, "equals")
		if e.From == "" || e.To == "" || e.Object == nil || e.Equal == nil {
			return nil, problem(at, "must have from, to, object and equals")
		}
		out = append(out, e)
	}
	return out, nil
}

// text returns a parameter of the rule that is a string, "" if it is missing.
func (r *Rule) text(name string) (string, error) {
	v, set := r.params[name]
	s, ok := v.(string)
	if set && (!ok || s == "") {
		return "", fmt.Errorf("%s must be a text", name)
	}
	return s, nil
}

// required is text for a parameter that must be there.
func (r *Rule) required(name string) (string, error) {
	s, err := r.text(name)
	if err == nil && s == "" {
		err = fmt.Errorf("%s is missing", name)
	}
	return s, err
}

// value returns the parameter "value", which must be there.
func (r *Rule) value() (any, error) {
	v, set := r.params["value"]
	if !set {
		return nil, errors.New("value is missing")
	}
	if n := len(codec.AppendJSON(nil, v)); n > maxValue {
		return nil, fmt.Errorf("value has %d bytes, at most %d are allowed", n, maxValue)
	}
	return v, nil
}

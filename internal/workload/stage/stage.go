// Package stage implements Stages, the objects of kwok.x-k8s.io/v1alpha1 by which kwok and this server run simulated
// objects. Source: kwok 0.8.0, pkg/apis/v1alpha1 and pkg/utils/lifecycle.
//
// A Stage is about objects of one kind. Its selector decides which of them it matches. If several Stages match an
// object, one is chosen at random by weight (Life). After its delay it is played: its steps describe the actions
// (Stage.Steps). The package is pure; package play decides when to write, and writes.
//
// Expressions are in jq or CEL, templates in text/template with the functions of sprig. All are compiled when a Stage
// is read, so errors are found then. A Stage is immutable and safe for concurrent use.
package stage

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The group and kind of Stages, and the store prefix of the Stages that clients create.
const (
	Group   = "kwok.x-k8s.io"
	Version = "v1alpha1"
	Kind    = "Stage"
	Plural  = "stages"
	Prefix  = Group + "/" + Plural
)

// AdditionalAnnotation, set to "true" on a Stage, makes it act in addition to the built-in simulation, and not in its
// place.
const AdditionalAnnotation = "bowsprit.dev/simulate-beside"

// Stage is a Stage that can be played.
type Stage struct {
	Name string
	// Of is the kind of the objects.
	Of schema.GroupVersionKind
	// Additional is set if AdditionalAnnotation is "true".
	Additional bool

	selector      *selector // nil matches nothing
	weight        number
	delay, jitter span
	immediate     bool
	steps         []step
}

// Selects reports whether the Stage can match anything: a Stage without a selector matches nothing.
func (s *Stage) Selects() bool { return s.selector != nil }

// Immediate reports whether the Stage asks to choose the next Stage at once, which this server always does.
func (s *Stage) Immediate() bool { return s.immediate }

// selector matches the objects of a Stage.
type selector struct {
	labels, annotations labels.Selector
	expressions         []condition
}

// compile compiles a document into a Stage. The error joins all problems.
func compile(d *document) (*Stage, error) {
	s := &Stage{
		Name: d.Metadata.Name, immediate: d.Spec.ImmediateNextStage != nil && *d.Spec.ImmediateNextStage,
		Additional: d.Metadata.Annotations[AdditionalAnnotation] == "true",
	}
	var p problems
	if why := validation.IsDNS1123Subdomain(s.Name); len(why) > 0 {
		p.add("metadata.name", fmt.Errorf("%q: %s", s.Name, why[0]))
	}
	gv, err := schema.ParseGroupVersion(cmp.Or(d.Spec.ResourceRef.APIGroup, "v1"))
	if err == nil && gv.Version == "" {
		err = fmt.Errorf("%q names no version: use v1 or apps/v1", d.Spec.ResourceRef.APIGroup)
	}
	p.add("spec.resourceRef.apiGroup", err)
	if s.Of = gv.WithKind(d.Spec.ResourceRef.Kind); s.Of.Kind == "" {
		p.add("spec.resourceRef.kind", errors.New("missing"))
	}
	if d.Spec.Selector != nil {
		s.selector = compileSelector(&p, d.Spec.Selector)
	}
	s.compileWeight(&p, d)
	s.compileDelay(&p, d.Spec.Delay)
	s.compileSteps(&p, &d.Spec)
	return s, p.err()
}

func compileSelector(p *problems, d *selectorSpec) *selector {
	out := &selector{}
	if d.MatchLabels != nil {
		out.labels = labels.SelectorFromSet(d.MatchLabels)
	}
	if d.MatchAnnotations != nil {
		out.annotations = labels.SelectorFromSet(d.MatchAnnotations)
	}
	for i := range d.MatchExpressions {
		c, err := d.MatchExpressions[i].compile()
		p.add(fmt.Sprintf("spec.selector.matchExpressions[%d]", i), err)
		out.expressions = append(out.expressions, c)
	}
	return out
}

func (s *Stage) compileWeight(p *problems, d *document) {
	if d.Spec.Weight < 0 {
		p.add("spec.weight", errors.New("must not be negative"))
	}
	e, err := d.Spec.WeightFrom.compile()
	p.add("spec.weightFrom", err)
	s.weight = number{value: d.Spec.Weight, from: e}
}

func (s *Stage) compileDelay(p *problems, d *delaySpec) {
	if d == nil {
		return
	}
	const path = "spec.delay."
	for field, ms := range map[string]*int64{
		"durationMilliseconds": d.DurationMilliseconds, "jitterDurationMilliseconds": d.JitterDurationMilliseconds,
	} {
		if ms != nil && *ms < 0 {
			p.add(path+field, errors.New("must not be negative"))
		}
	}
	from, err := d.DurationFrom.compile()
	p.add(path+"durationFrom", err)
	jitter, err := d.JitterDurationFrom.compile()
	p.add(path+"jitterDurationFrom", err)
	zero := int64(0)
	s.delay = span{milliseconds: cmp.Or(d.DurationMilliseconds, &zero), from: from}
	s.jitter = span{milliseconds: d.JitterDurationMilliseconds, from: jitter}
}

func (s *Stage) compileSteps(p *problems, d *spec) {
	path := "spec.steps[%d]"
	steps := d.Steps
	if len(steps) == 0 && d.Next != nil {
		steps, path = d.Next.steps(), "spec.next, action %d"
	}
	for i := range steps {
		one, err := steps[i].compile(s.Of)
		p.add(fmt.Sprintf(path, i), err)
		s.steps = append(s.steps, one)
	}
}

// problems collects the errors of a Stage.
type problems struct{ all []error }

func (p *problems) add(path string, err error) {
	if err != nil {
		p.all = append(p.all, fmt.Errorf("%s: %w", path, err))
	}
}

func (p *problems) err() error { return errors.Join(p.all...) }

// step is a compiled action of a Stage.
type step struct {
	stepSpec
	patch, apply *outline
}

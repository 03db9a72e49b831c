package definitions

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/compat"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Bounds of the texts for a client.
const (
	maxListed = 6   // findings of a warning
	maxCauses = 20  // findings of a refusal
	maxText   = 400 // characters of a finding
)

// change is the check of an update of a definition.
type change struct {
	name    string
	policy  *compat.Own
	within  time.Duration
	changes []compat.Finding
	objects []*compat.Objects
	ends    *compat.Converted // for a change that ends a conversion; objects is empty then
	broken  error             // the reason why the objects cannot be checked
}

// change returns the check of an update of a definition, nil if there is nothing to check or to report.
func (p *protection) change(now, was state) *catalog.Proof {
	c := &change{name: now.Name, policy: p.policy(now.object, was.object), within: p.settings.Within}
	if c.policy.Mode == compat.NoCheck {
		return nil
	}
	c.changes = compat.Compare(was.CustomResourceDefinition, now.CustomResourceDefinition)
	c.objects = compat.NewObjects(was.CustomResourceDefinition, now.CustomResourceDefinition)
	found := c.judge(c.changes)
	if len(found) == 0 && len(c.objects) == 0 {
		return nil
	}
	text, _ := inForce(now.object, was.object, compat.Annotation)
	proof := &catalog.Proof{
		Key:      "change " + text + " " + string(codec.AppendJSON(nil, now.object["spec"])),
		Contents: contents(was.CustomResourceDefinition), Path: field.NewPath("spec", "versions"),
		Verdict: c.verdict, Report: c.report,
	}
	for _, o := range c.objects {
		o.HideValues() // the author of the definition may lack the right to read the objects
		proof.Versions = append(proof.Versions, o.Version())
		proof.Check = c.check
	}
	if c.policy.Mode != compat.Enforce || slices.ContainsFunc(found, refuses) {
		proof.Within = c.within // a change that is refused anyway needs no exact numbers
	}
	return proof
}

// ends returns the check of an update that ends the conversion of the objects, nil for another update. It reads the
// objects as they are stored.
func (p *protection) ends(now, was state) *catalog.Proof {
	c := &change{name: now.Name, policy: p.policy(now.object, was.object), within: p.settings.Within}
	c.ends = compat.NewConverted(was.CustomResourceDefinition, now.CustomResourceDefinition)
	if c.ends == nil || c.policy.Mode == compat.NoCheck {
		return nil
	}
	c.ends.HideValues() // the author of the definition may lack the right to read the objects
	text, _ := inForce(now.object, was.object, compat.Annotation)
	proof := &catalog.Proof{
		Key:      "end " + text + " " + string(codec.AppendJSON(nil, now.object["spec"])),
		Contents: contents(was.CustomResourceDefinition), Path: field.NewPath("spec", "conversion"),
		Check: c.check, Verdict: c.verdict, Report: c.report,
	}
	if c.policy.Mode != compat.Enforce {
		proof.Within = c.within
	}
	return proof
}

// check checks an object in a version, or as it is stored.
func (c *change) check(version string, obj object.Object) error {
	meta := object.Meta(obj)
	namespace, name := object.String(meta, "namespace"), object.String(meta, "name")
	if c.ends != nil && c.broken == nil {
		c.broken = c.ends.Check(namespace, name, obj)
	}
	for _, o := range c.objects {
		if o.Version() == version && c.broken == nil {
			c.broken = o.Check(namespace, name, obj)
		}
	}
	return nil
}

// judged is a finding with its level.
type judged struct {
	compat.Finding
	level compat.Level
}

func refuses(f judged) bool { return f.level == compat.Error }

// judge returns the findings that are neither off nor exempted, errors first.
func (c *change) judge(all []compat.Finding) (found []judged) {
	for i := range all {
		if level, _ := c.policy.Level(c.name, &all[i]); level != compat.Off {
			found = append(found, judged{all[i], level})
		}
	}
	slices.SortStableFunc(found, func(a, b judged) int { return weight(a.level) - weight(b.level) })
	return found
}

func weight(l compat.Level) int {
	if l == compat.Error {
		return 0
	}
	return 1
}

// found returns all findings: first about stored objects, then about the definition.
func (c *change) found() []judged {
	var all []compat.Finding
	if c.ends != nil {
		all = c.ends.Findings()
	}
	for _, o := range c.objects {
		all = append(all, o.Findings()...)
	}
	return c.judge(append(all, c.changes...))
}

// verdict returns the errors that refuse the update.
func (c *change) verdict(read, all int) (errs field.ErrorList) {
	if c.policy.Mode != compat.Enforce {
		return nil
	}
	found := slices.DeleteFunc(c.found(), func(f judged) bool { return !refuses(f) })
	for i, f := range found {
		if i == maxCauses {
			errs = append(errs, field.Forbidden(field.NewPath("spec"), fmt.Sprintf("%d more findings", len(found)-i)))
			break
		}
		at := f.Location
		if at == "" {
			at = "spec.versions"
		}
		errs = append(errs, field.Forbidden(field.NewPath(at), describe(f)))
	}
	switch {
	case c.broken != nil:
		errs = append(errs, field.Forbidden(field.NewPath("spec", "versions"),
			"the stored objects cannot be checked: "+c.broken.Error()))
	case len(errs) == 0:
		return nil
	case read < all:
		errs = append(errs, field.Forbidden(field.NewPath("spec", "versions"), c.partly(read, all)))
	}
	return append(errs, field.Forbidden(annotationsPath.Key(compat.Annotation), "the policy Enforce refuses changes that "+
		"break clients or stored objects: change the objects first, or accept single findings by exemptions with a "+
		"reason in this annotation, or all of them by its value Warn"))
}

// report returns the warning about the findings.
func (c *change) report(read, all int) string {
	found := c.found()
	var texts []string
	for i, f := range found {
		if i == maxListed {
			texts = append(texts, fmt.Sprintf("%d more findings, which bowsprit crd diff --live lists", len(found)-i))
			break
		}
		texts = append(texts, describe(f))
	}
	switch {
	case c.broken != nil:
		texts = append(texts, "the stored objects cannot be checked: "+c.broken.Error())
	case read < all && (len(c.objects) > 0 || c.ends != nil):
		texts = append(texts, c.partly(read, all))
	}
	if len(texts) == 0 {
		return ""
	}
	prefix := "this change may break clients or stored objects: "
	if len(found) == 0 {
		prefix = "this change may break stored objects: "
	}
	return printable(prefix + strings.Join(texts, "; "))
}

// partly describes a check that did not read all objects.
func (c *change) partly(read, all int) string {
	return fmt.Sprintf("%d of %d stored objects were read in %s: bowsprit crd diff --live reads all", read, all, c.within)
}

// describe returns the text of a finding.
func describe(f judged) string {
	text := f.Text
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Version != "" {
		text = f.Version + ": " + text
	}
	if utf8.RuneCountInString(text) > maxText {
		text = string([]rune(text)[:maxText]) + "…"
	}
	return printable(fmt.Sprintf("%s (%s)", text, f.Class))
}

// printable replaces the characters that a header cannot hold.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

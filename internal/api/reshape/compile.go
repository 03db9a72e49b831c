package reshape

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// compiler compiles the rules between two versions. It collects all problems.
type compiler struct {
	names    [2]string // of the versions
	problems []string
	nodes    int
}

// maxNodes bounds the places of two schemas that a step compares, and maxProblems the reported problems.
const (
	maxNodes    = 200_000
	maxProblems = 20
)

func (c *compiler) problem(at, text string) {
	if len(c.problems) < maxProblems {
		if at != "" {
			text = at + ": " + text
		}
		c.problems = append(c.problems, text)
	}
}

// level compiles rules between the objects of two schemas. root is true for whole objects, at is the place in the
// configuration, path the place of the objects, for texts.
func (c *compiler) level(a, b *schema.Node, rules []Rule, path string, root bool) *level {
	w := &weaver{compiler: c, level: &level{}, root: root, path: path, objects: [2]*schema.Node{a, b}}
	for i := range rules {
		w.rule(&rules[i], a, b)
	}
	w.overlaps()
	w.cover(a, b, nil)
	w.vessels(a, b)
	return w.level
}

// weaver compiles one level.
type weaver struct {
	*compiler
	level   *level
	objects [2]*schema.Node
	root    bool
	path    string
	claimed [2][]claim
}

// claim is a place that belongs to a rule.
type claim struct {
	path Path
	rule string // its place in the configuration
}

// rule adds one rule.
func (w *weaver) rule(r *Rule, a, b *schema.Node) {
	if err := w.add(r, a, b); err != nil {
		w.problem(r.at, err.Error())
	}
}

func (w *weaver) add(r *Rule, a, b *schema.Node) error {
	switch r.Verb {
	case "default", "constant":
		return w.fill(r, a, b)
	case "delete":
		return w.remove(r, a, b)
	}
	from, err := w.find(r.From, a, first)
	if err != nil {
		return err
	}
	to, err := w.find(r.To, b, second)
	if err != nil {
		return err
	}
	w.claim(r, r.From, r.To)
	if r.Verb == "move" || r.Verb == "forEach" {
		return w.nest(r, from.nodes[0], to.nodes[0])
	}
	op, err := verbs[r.Verb].make(r, from.nodes, to.nodes)
	if err != nil {
		return err
	}
	for _, n := range slices.Concat(from.nodes, to.nodes) {
		if sensitive(n) {
			return fmt.Errorf("%s may need the stash, which is not masked: move a sensitive field as it is", r.Verb)
		}
	}
	w.level.transfers = append(w.level.transfers, w.transfer(r.at, from, to, op))
	return nil
}

// ends are the places of a rule on one side.
type ends struct {
	paths []Path
	nodes []*schema.Node
}

func end(p Path, n *schema.Node) ends { return ends{[]Path{p}, []*schema.Node{n}} }

// find returns the schemas at the paths of one side. All must exist.
func (w *weaver) find(paths []Path, n *schema.Node, of side) (out ends, err error) {
	out.paths = paths
	for _, p := range paths {
		node, err := lookup(n, p, w.root)
		if err != nil {
			return out, fmt.Errorf("%s: %w", p, err)
		}
		if node == nil {
			return out, fmt.Errorf("version %s has no field %s", w.names[of], join(w.path, p.String()))
		}
		out.nodes = append(out.nodes, node)
	}
	return out, nil
}

func (w *weaver) claim(r *Rule, from, to []Path) {
	for _, p := range from {
		w.claimed[first] = append(w.claimed[first], claim{p, r.at})
	}
	for _, p := range to {
		w.claimed[second] = append(w.claimed[second], claim{p, r.at})
	}
}

// nest adds a rule that moves a value. Its contents may have another shape.
func (w *weaver) nest(r *Rule, a, b *schema.Node) error {
	if r.Verb == "move" && len(r.Rules) == 0 && differ(a, b, "") == "" {
		w.level.transfers = append(w.level.transfers, w.transfer(r.at, end(r.From[0], a), end(r.To[0], b), same))
		return nil
	}
	into := w.shape(a, b, inside{r.Rules, join(w.path, r.To[0].String()), r.at, r.Verb == "forEach"})
	if into == nil {
		return nil // reported
	}
	w.level.nests = append(w.level.nests,
		&nest{slot: [2]slot{newSlot(r.From[0], a), newSlot(r.To[0], b)}, into: into})
	return nil
}

// inside describes the contents of a value to convert.
type inside struct {
	rules []Rule
	path  string // the place of the values, for texts
	at    string // the place in the configuration
	each  bool   // rules are for the items of a list or map
}

// shape returns the conversion between values of two schemas; nil if it reported a problem.
func (w *weaver) shape(a, b *schema.Node, in inside) shaper {
	if w.nodes++; w.nodes > maxNodes {
		w.tooLarge(in.at)
		return nil
	}
	below := func(x, y *schema.Node) shaper {
		items := inside{path: in.path + "[]", at: in.at}
		if in.each {
			items.rules = in.rules
		}
		return w.shape(x, y, items)
	}
	lists := in.each || len(in.rules) == 0
	switch {
	case a.Nullable != b.Nullable:
	case lists && a.Type == "array" && b.Type == "array" && a.Items != nil && b.Items != nil:
		if (sensitive(a.Items) && a.ListType != "map" || sensitive(b.Items) && b.ListType != "map") &&
			differ(a.Items, b.Items, "") != "" {
			w.problem(in.at, in.path+" has sensitive fields in its items: items without keys are found by their contents, "+
				"and the stash is not masked: use x-kubernetes-list-type: map")
			return nil
		}
		if into := below(a.Items, b.Items); into != nil {
			return &listShape{into: into, lists: [2]*schema.Node{a, b}}
		}
		return nil
	case lists && a.AdditionalProperties != nil && b.AdditionalProperties != nil:
		if into := below(a.AdditionalProperties, b.AdditionalProperties); into != nil {
			return &mapShape{into: into}
		}
		return nil
	case plain(a) && plain(b) && !in.each:
		return w.compiler.level(a, b, in.rules, in.path, false)
	}
	if in.each {
		w.problem(in.at, "forEach needs a list or map on both sides")
		return nil
	}
	if why := differ(a, b, in.path); why != "" {
		w.problem(in.at, why+": add a rule")
		return nil
	}
	return keep{}
}

// tooLarge reports once that there are too many nodes.
func (w *weaver) tooLarge(at string) {
	if w.nodes == maxNodes+1 {
		w.problem(at, "the schemas are too large to compare")
	}
}

// fill adds a rule that gives a value to a field that the other version may lack.
func (w *weaver) fill(r *Rule, a, b *schema.Node) error {
	value, err := r.value()
	if err != nil {
		return err
	}
	from, err := lookup(a, r.From[0], w.root)
	if err != nil {
		return fmt.Errorf("%s: %w", r.From[0], err)
	}
	to, err := lookup(b, r.To[0], w.root)
	if err != nil {
		return fmt.Errorf("%s: %w", r.To[0], err)
	}
	if sensitive(from) || sensitive(to) {
		return errors.New("is not for a sensitive field")
	}
	switch {
	case from == nil && to == nil:
		return fmt.Errorf("no version has the field %s", join(w.path, r.To[0].String()))
	case from != nil && to != nil:
		if r.Verb == "constant" {
			return errors.New("constant is for a field of one version: use default")
		}
		if why := differ(from, to, r.To[0].String()); why != "" {
			return errors.New(why)
		}
		w.claim(r, r.From, r.To)
		w.level.transfers = append(w.level.transfers, w.transfer(r.at, end(r.From[0], from), end(r.To[0], to),
			filled(value, true)))
	case to != nil:
		w.claim(r, nil, r.To)
		w.level.transfers = append(w.level.transfers, w.transfer(r.at, ends{}, end(r.To[0], to), filled(value, false)))
	default:
		op, _ := reversed(filled(value, false), nil)
		w.claim(r, r.From, nil)
		w.level.transfers = append(w.level.transfers, w.transfer(r.at, end(r.From[0], from), ends{}, op))
	}
	return nil
}

// remove adds a rule that gives up the values of a field.
func (w *weaver) remove(r *Rule, a, b *schema.Node) error {
	if loss, err := r.text("loss"); err != nil || loss != "acknowledged" {
		return errors.New("delete loses the field's values: write loss: acknowledged, " +
			"or leave the rule out, and the values are kept in the stash")
	}
	lost := &operation{forward: none, backward: none, lossy: true}
	from, err := lookup(a, r.From[0], w.root)
	if err != nil {
		return err
	}
	if from != nil {
		w.claim(r, r.From, nil)
		w.level.transfers = append(w.level.transfers, w.transfer(r.at, end(r.From[0], from), ends{}, lost))
		return nil
	}
	to, err := w.find(r.From, b, second)
	if err != nil {
		return fmt.Errorf("no version has the field %s", join(w.path, r.From[0].String()))
	}
	w.claim(r, nil, r.From)
	w.level.transfers = append(w.level.transfers, w.transfer(r.at, ends{}, to, lost))
	return nil
}

// transfer returns a compiled rule.
func (w *weaver) transfer(at string, from, to ends, op *operation) *transfer {
	t := &transfer{operation: op, at: at}
	for of, e := range [2]ends{from, to} {
		for i, p := range e.paths {
			t.slots[of] = append(t.slots[of], w.slot(p, e.nodes[i], side(of)))
			if w.root && p[0] == "metadata" && p[1] == "labels" {
				t.operation = t.labelled(side(of), i)
			}
		}
	}
	return t
}

// slot returns a place of one side.
func (w *weaver) slot(p Path, n *schema.Node, of side) slot {
	out := newSlot(p, n)
	last := len(p) - 1
	if parent, err := lookup(w.objects[of], p[:last], false); err == nil && parent != nil && !n.HasDefault {
		out.required = slices.Contains(parent.Required, p[last])
	}
	return out
}

// overlaps reports places that belong to two rules.
func (w *weaver) overlaps() {
	for side, claims := range w.claimed {
		for i, x := range claims {
			for _, y := range claims[:i] {
				if slices.Equal(x.path, y.path) || x.path.below(y.path) || y.path.below(x.path) {
					w.problem(x.rule, fmt.Sprintf("the field %s of version %s has another rule, %s: two rules for one field",
						join(w.path, x.path.String()), w.names[side], y.rule))
				}
			}
		}
	}
}

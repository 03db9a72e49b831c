package reshape

import (
	"fmt"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// slot is a place in the objects of one version.
type slot struct {
	path Path
	key  string // the path as text: its name in a stash
	node *schema.Node
	// required is true if the schema requires the field and has no default for it.
	required bool
}

func newSlot(p Path, n *schema.Node) slot { return slot{path: p, key: p.String(), node: n} }

// transfer is a compiled rule: its operation converts the values at the places of one side.
type transfer struct {
	*operation
	slots [2][]slot
	at    string
}

// nest is a value with contents that are converted by rules of their own.
type nest struct {
	slot [2]slot
	into shaper
}

// vessel is an object that holds places of rules. It is in one version, or in both.
type vessel struct {
	slot
	in       [2]bool
	nullable [2]bool
	meta     bool // labels or annotations
}

// shaper converts values of one schema to another, in place if possible.
type shaper interface {
	// shape returns the converted value, and the stash of values that have no place in it. stashed is the stash of an
	// earlier conversion in the other direction; it is not changed.
	shape(r *run, d direction, v any, stashed object.Object) (out any, lost object.Object, err error)
}

// keep leaves values as they are.
type keep struct{}

func (keep) shape(_ *run, _ direction, v any, _ object.Object) (any, object.Object, error) {
	return v, nil, nil
}

// level converts objects. Its parts are in no order: all values are taken before the first one is set.
type level struct {
	transfers []*transfer
	nests     []*nest
	vessels   []vessel // the deepest first
}

// run is one conversion of an object.
type run struct {
	schemas [2]*schema.Schema // of the step's versions
	left    int               // bytes that rules may still add
}

// maxAdded bounds the bytes that default and constant add to one object.
const maxAdded = 4 << 20

// state is a vessel before the conversion.
type state struct {
	value any // missing{} if there is none
	empty bool
}

func (l *level) shape(r *run, d direction, v any, stashed object.Object) (any, object.Object, error) {
	obj, ok := v.(object.Object)
	if !ok || obj == nil {
		return v, nil, nil
	}
	c := &conversion{run: r, level: l, d: d, obj: obj, stashed: stashed}
	err := c.all()
	return obj, c.lost, err
}

// conversion is one conversion of one object of a level.
type conversion struct {
	*run
	*level
	d       direction
	obj     object.Object
	stashed object.Object
	lost    object.Object
	before  []state
	taken   []any // of the transfers' places, then of the nests
}

// all takes all values, converts them and sets the results.
func (c *conversion) all() error {
	c.take()
	rest := c.taken
	for _, t := range c.transfers {
		n := len(t.slots[c.d])
		if err := c.transfer(t, rest[:n:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	for i, n := range c.nests {
		if err := c.nest(n, rest[i]); err != nil {
			return err
		}
	}
	c.restoreVessels()
	c.keepVessels()
	return nil
}

// take removes the values of all rules, and objects that only they were in.
func (c *conversion) take() {
	if len(c.vessels) > 0 {
		c.before = make([]state, len(c.vessels))
		for i := range c.vessels {
			v := c.vessels[i].path.get(c.obj)
			m, isObject := v.(object.Object)
			c.before[i] = state{v, isObject && len(m) == 0 || v == nil}
		}
	}
	for _, t := range c.transfers {
		for i := range t.slots[c.d] {
			c.taken = append(c.taken, t.slots[c.d][i].path.take(c.obj))
		}
	}
	for _, n := range c.nests {
		if n.slot[first].key == n.slot[second].key {
			c.taken = append(c.taken, n.slot[c.d].path.get(c.obj))
		} else {
			c.taken = append(c.taken, n.slot[c.d].path.take(c.obj))
		}
	}
	for i := range c.vessels {
		v := &c.vessels[i]
		if !v.meta && (!v.in[c.d] || v.in[1-c.d]) {
			continue
		}
		now := v.path.get(c.obj)
		if m, isObject := now.(object.Object); now == nil || isObject && len(m) == 0 {
			v.path.take(c.obj)
		}
		if !v.meta && c.before[i].empty {
			c.stash(v.key, c.before[i].value)
		}
	}
}

// stash keeps the value of a place, or that it had none.
func (c *conversion) stash(key string, v any) {
	if c.lost == nil {
		c.lost = object.Object{}
	}
	if isMissing(v) {
		c.lost[key] = []any{}
		return
	}
	c.lost[key] = []any{v}
}

// transfer converts the values of one rule.
func (c *conversion) transfer(t *transfer, in []any) error {
	from, to := t.slots[c.d], t.slots[1-c.d]
	out := make([]any, len(to), len(to)+len(from))
	if !c.restore(t, in, out) {
		if err := t.convert(c.d)(in, out); err != nil {
			clearValues(out)
			if i := c.requires(to); i >= 0 {
				return &noValue{at: t.at, from: from[0].key, to: to[i].key, err: err}
			}
		}
		if !t.exact && !t.lossy {
			back := out[len(to):cap(out)]
			if t.convert(1-c.d)(out, back) != nil {
				clearValues(back)
			}
			for i := range in {
				if !equal(in[i], back[i]) {
					c.stashAll(from, in)
					break
				}
			}
		}
	}
	for i := range to {
		if t.adds {
			if err := c.add(&out[i]); err != nil {
				return fmt.Errorf("%s: %w", t.at, err)
			}
		}
		to[i].path.set(c.obj, out[i])
	}
	return nil
}

// noValue is the error for a value without a value in a required field of the other version.
type noValue struct {
	at, from, to string // the rule and the places
	err          error  // the reason, which may contain the value
}

func (e *noValue) Error() string { return fmt.Sprintf("%s: it %v", e.location(), e.err) }

func (e *noValue) Unwrap() error { return e.err }

// location is Error without the value.
func (e *noValue) location() string {
	return fmt.Sprintf("%s: the value of %s has no value in %s", e.at, e.from, e.to)
}

// add copies a value that a rule adds, within the bound of the conversion.
func (c *conversion) add(v *any) error {
	switch of := (*v).(type) {
	case object.Object, []any:
		c.left -= len(codec.AppendJSON(nil, of))
		*v = codec.Clone(of)
	case string:
		c.left -= len(of)
	}
	if c.left < 0 {
		return fmt.Errorf("the rules add more than %d bytes to the object", maxAdded)
	}
	return nil
}

// requires returns the index of the first required place, -1 if there is none.
func (c *conversion) requires(places []slot) int {
	for i := range places {
		if places[i].required {
			return i
		}
	}
	return -1
}

func (c *conversion) stashAll(places []slot, values []any) {
	for i := range places {
		c.stash(places[i].key, values[i])
	}
}

// restore sets out to the values of an earlier conversion in the other direction, if the stash has them and they do not
// contradict the values of the object: converted, they must be equal.
func (c *conversion) restore(t *transfer, in, out []any) bool {
	if c.stashed == nil || len(out) == 0 || t.exact {
		return false
	}
	to := t.slots[1-c.d]
	for i := range to {
		kept, ok := c.stashed[to[i].key].([]any)
		if !ok || len(kept) > 1 {
			return false
		}
		if out[i] = any(missing{}); len(kept) == 1 {
			out[i] = kept[0]
			if !c.schemas[1-c.d].Accepts(to[i].node, kept[0]) {
				return false
			}
		}
	}
	again := make([]any, len(in))
	if t.convert(1-c.d)(out, again) != nil {
		clearValues(again)
	}
	for i := range in {
		if !equal(in[i], again[i]) {
			return false
		}
	}
	return true
}

// equal compares values of the object.
func equal(a, b any) bool {
	if isMissing(a) || isMissing(b) {
		return isMissing(a) && isMissing(b)
	}
	return codec.Equal(a, b)
}

// nest converts the contents of a value.
func (c *conversion) nest(n *nest, v any) error {
	if isMissing(v) {
		return nil
	}
	below, _ := c.stashed[n.slot[1-c.d].key].(object.Object)
	out, lost, err := n.into.shape(c.run, c.d, v, below)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		if c.lost == nil {
			c.lost = object.Object{}
		}
		c.lost[n.slot[c.d].key] = lost
	}
	n.slot[1-c.d].path.set(c.obj, out)
	return nil
}

// restoreVessels restores empty objects, nulls and missing objects, the deepest first.
func (c *conversion) restoreVessels() {
	if c.stashed == nil {
		return
	}
	for i := range c.vessels {
		v := &c.vessels[i]
		kept, ok := c.stashed[v.key].([]any)
		if !ok || v.meta || !v.in[1-c.d] || len(kept) > 1 {
			continue
		}
		now := v.path.get(c.obj)
		m, isObject := now.(object.Object)
		switch {
		case len(kept) == 1 && kept[0] == nil && !v.nullable[1-c.d]:
		case !v.in[c.d] && isMissing(now) && len(kept) == 1:
			if was, _ := kept[0].(object.Object); len(was) == 0 {
				v.path.set(c.obj, emptied(kept[0]))
			}
		case v.in[c.d] && isObject && len(m) == 0:
			v.path.take(c.obj)
			if len(kept) == 1 && kept[0] == nil {
				v.path.set(c.obj, nil)
			}
		}
	}
}

// emptied returns null or an empty object.
func emptied(v any) any {
	if v == nil {
		return nil
	}
	return object.Object{}
}

// keepVessels stashes that an object of both versions was missing, or null, before a rule set a value in it.
func (c *conversion) keepVessels() {
	for i := range c.vessels {
		v := &c.vessels[i]
		if v.meta || !v.in[first] || !v.in[second] {
			continue
		}
		was := c.before[i].value
		if _, isObject := was.(object.Object); isObject {
			continue
		}
		now := v.path.get(c.obj)
		if _, isObject := now.(object.Object); isObject {
			c.stash(v.key, was)
		} else if now == nil && !v.nullable[1-c.d] {
			v.path.take(c.obj)
			c.stash(v.key, nil)
		}
	}
}

package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

var (
	errTooDeep = fmt.Errorf("the patched object nests deeper than %d levels", maxDepth)
	errMoved   = fmt.Errorf("the patch moves more than %d elements of lists: replace the list instead", maxMoved)
	errScalar  = errors.New("replace operation value must be object or array: %!w(<nil>)") // the library's text
)

// patching is a document while a JSON patch is applied to it.
type patching struct {
	root   any // map[string]any or []any
	copied int // bytes
	moved  int // elements of lists
}

func (p *patching) do(op jsonpatch.Operation) error {
	switch op.Kind() {
	case "add":
		return p.add(op)
	case "remove":
		return p.remove(op)
	case "replace":
		return p.replace(op)
	case "move":
		return p.move(op)
	case "test":
		return p.test(op)
	case "copy":
		return p.copy(op)
	}
	//lint:ignore ST1005 the library's text
	return fmt.Errorf("Unexpected kind: %s", op.Kind())
}

func (p *patching) add(op jsonpatch.Operation) error {
	path, err := op.Path()
	if err != nil {
		return fmt.Errorf("add operation failed to decode path: %w", jsonpatch.ErrMissing)
	}
	at, ok := p.find(path)
	if !ok {
		return fmt.Errorf("add operation does not apply: doc is missing path: \"%s\": %w", path, jsonpatch.ErrMissing)
	}
	value, err := valueOf(op)
	if err == nil {
		err = p.insert(at, value)
	}
	if err != nil {
		return fmt.Errorf("error in add for path: '%s': %w", path, err)
	}
	return nil
}

func (p *patching) remove(op jsonpatch.Operation) error {
	path, err := op.Path()
	if err != nil {
		return fmt.Errorf("remove operation failed to decode path: %w", jsonpatch.ErrMissing)
	}
	at, ok := p.find(path)
	if !ok {
		return fmt.Errorf("remove operation does not apply: doc is missing path: \"%s\": %w", path,
			jsonpatch.ErrMissing)
	}
	if err := p.take(at); err != nil {
		return fmt.Errorf("error in remove for path: '%s': %w", path, err)
	}
	return nil
}

func (p *patching) replace(op jsonpatch.Operation) error {
	path, err := op.Path()
	if err != nil {
		return fmt.Errorf("replace operation failed to decode path: %w", err)
	}
	value, err := valueOf(op)
	if path == "" {
		switch value.(type) {
		case map[string]any, []any:
			p.root = value
			return nil
		}
		return errors.Join(errScalar, err)
	}
	at, ok := p.find(path)
	if !ok {
		return fmt.Errorf("replace operation does not apply: doc is missing path: %s: %w", path, jsonpatch.ErrMissing)
	}
	if _, err := at.get(); err != nil {
		return fmt.Errorf("replace operation does not apply: doc is missing key: %s: %w", path, jsonpatch.ErrMissing)
	}
	if err != nil {
		return fmt.Errorf("error in remove for path: '%s': %w", path, err) // the library's wording
	}
	at.set(value)
	return nil
}

func (p *patching) move(op jsonpatch.Operation) error {
	from, err := op.From()
	if err != nil {
		return fmt.Errorf("move operation failed to decode from: %w", err)
	}
	at, ok := p.find(from)
	if !ok {
		return fmt.Errorf("move operation does not apply: doc is missing from path: %s: %w", from, jsonpatch.ErrMissing)
	}
	value, err := at.get()
	if err == nil {
		err = p.take(at)
	}
	if err != nil {
		return fmt.Errorf("error in move for path: '%s': %w", at.key, err)
	}
	path, err := op.Path()
	if err != nil {
		return fmt.Errorf("move operation failed to decode path: %w", err)
	}
	if at, ok = p.find(path); !ok {
		return fmt.Errorf("move operation does not apply: doc is missing destination path: %s: %w", path,
			jsonpatch.ErrMissing)
	}
	if err := p.insert(at, value); err != nil {
		return fmt.Errorf("error in move for path: '%s': %w", path, err)
	}
	return nil
}

func (p *patching) test(op jsonpatch.Operation) error {
	path, err := op.Path()
	if err != nil {
		return fmt.Errorf("test operation failed to decode path: %w", err)
	}
	have := p.root
	if path != "" {
		at, ok := p.find(path)
		if !ok {
			return fmt.Errorf("test operation does not apply: is missing path: %s: %w", path, jsonpatch.ErrMissing)
		}
		if have, err = at.get(); err != nil {
			return fmt.Errorf("error in test for path: '%s': %w", path, err)
		}
	}
	if want, err := valueOf(op); err != nil || !equal(have, want) {
		return fmt.Errorf("testing value %s failed: %w", path, jsonpatch.ErrTestFailed)
	}
	return nil
}

func (p *patching) copy(op jsonpatch.Operation) error {
	from, err := op.From()
	if err != nil {
		return fmt.Errorf("copy operation failed to decode from: %w", err)
	}
	at, ok := p.find(from)
	if !ok {
		return fmt.Errorf("copy operation does not apply: doc is missing from path: %s: %w", from, jsonpatch.ErrMissing)
	}
	value, err := at.get()
	if err != nil {
		return fmt.Errorf("error in copy for from: '%s': %w", from, err)
	}
	path, err := op.Path()
	if err != nil {
		return fmt.Errorf("copy operation failed to decode path: %w", jsonpatch.ErrMissing)
	}
	if at, ok = p.find(path); !ok {
		return fmt.Errorf("copy operation does not apply: doc is missing destination path: %s: %w", path,
			jsonpatch.ErrMissing)
	}
	if value, err = p.duplicate(value); err != nil {
		return err
	}
	if err := p.insert(at, value); err != nil {
		return fmt.Errorf("error while adding value during copy: %w", err)
	}
	return nil
}

// duplicate returns a copy of v and counts its size.
func (p *patching) duplicate(v any) (any, error) {
	if v == nil { // costs nothing, as in the library
		return nil, nil
	}
	if !within(v, maxDepth) {
		return nil, errTooDeep
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("error while performing deep copy: %w", err)
	}
	if p.copied += len(raw); p.copied > maxCopied {
		return nil, jsonpatch.NewAccumulatedCopySizeError(maxCopied, int64(p.copied))
	}
	return runtime.DeepCopyJSONValue(v), nil
}

// location is the target of a path: key in container, which is the value of under in parent. parent is nil if container
// is the root. container and parent are map[string]any or []any; key need not be in container.
type location struct {
	container, parent any
	key, under        string
}

// find returns the location of a path (RFC 6901). ok is false if the path leads through a value other than an object or
// array. As in the library, text before the first slash is ignored.
func (p *patching) find(path string) (location, bool) {
	_, rest, ok := strings.Cut(path, "/")
	if !ok {
		return location{}, false
	}
	at := location{container: p.root}
	for {
		segment, more, deeper := strings.Cut(rest, "/")
		at.key = unescape(segment)
		if !deeper {
			return at, true
		}
		next, err := at.get()
		if err != nil {
			return location{}, false
		}
		switch next.(type) {
		case map[string]any, []any:
		default:
			return location{}, false
		}
		at.parent, at.under, at.container, rest = at.container, at.key, next, more
	}
}

// unescape decodes a segment of a path: "~1" is a slash, "~0" a tilde.
func unescape(segment string) string {
	if !strings.Contains(segment, "~") {
		return segment
	}
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
}

// get returns the value at the location. A missing field of an object is nil, without an error.
func (at *location) get() (any, error) {
	if m, ok := at.container.(map[string]any); ok {
		return m[at.key], nil
	}
	list := at.container.([]any)
	i, err := index(at.key, len(list), len(list)-1)
	if err != nil {
		return nil, err
	}
	return list[i], nil
}

// set replaces a value that get has returned.
func (at *location) set(value any) {
	if m, ok := at.container.(map[string]any); ok {
		m[at.key] = value
		return
	}
	list := at.container.([]any)
	if i, err := index(at.key, len(list), len(list)-1); err == nil {
		list[i] = value
	}
}

// insert puts a value into an object, or before the index of an array; "-" is behind its last.
func (p *patching) insert(at location, value any) error {
	if m, ok := at.container.(map[string]any); ok {
		m[at.key] = value
		return nil
	}
	list := at.container.([]any)
	i := len(list)
	if at.key != "-" {
		if _, err := strconv.Atoi(at.key); err != nil {
			return fmt.Errorf("value was not a proper array index: '%s': %w", at.key, err)
		}
		var err error
		if i, err = index(at.key, len(list)+1, len(list)); err != nil {
			return err
		}
	}
	if err := p.shift(len(list) - i); err != nil {
		return err
	}
	p.hang(at, slices.Insert(list, i, value))
	return nil
}

// shift counts the elements behind one that is inserted or removed.
func (p *patching) shift(n int) error {
	if p.moved += n; p.moved > maxMoved {
		return errMoved
	}
	return nil
}

// take removes the value at the location.
func (p *patching) take(at location) error {
	if m, ok := at.container.(map[string]any); ok {
		if _, ok := m[at.key]; !ok {
			//lint:ignore ST1005 the library's text
			return fmt.Errorf("Unable to remove nonexistent key: %s: %w", at.key, jsonpatch.ErrMissing)
		}
		delete(m, at.key)
		return nil
	}
	list := at.container.([]any)
	i, err := index(at.key, len(list), len(list)-1)
	if err != nil {
		return err
	}
	if err := p.shift(len(list) - i - 1); err != nil {
		return err
	}
	p.hang(at, slices.Delete(list, i, i+1))
	return nil
}

// hang puts list where the location's array was.
func (p *patching) hang(at location, list []any) {
	if at.parent == nil {
		p.root = list
		return
	}
	above := location{container: at.parent, key: at.under}
	above.set(list)
}

// index parses an array index, which may count from the end: from -size to last.
func index(key string, size, last int) (int, error) {
	i, err := strconv.Atoi(key)
	if err != nil {
		return 0, err
	}
	if i > last || i < -size {
		//lint:ignore ST1005 the library's text
		return 0, fmt.Errorf("Unable to access invalid index: %d: %w", i, jsonpatch.ErrInvalidIndex)
	}
	if i < 0 {
		i += size
	}
	return i, nil
}

// valueOf returns the value of an operation, nil if it has none.
func valueOf(op jsonpatch.Operation) (v any, err error) {
	if raw := op["value"]; raw != nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(*raw, &v)
	}
	return v, err
}

// within reports whether v, decoded JSON, nests at most depth levels deep.
func within(v any, depth int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if depth == 0 || !within(e, depth-1) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if depth == 0 || !within(e, depth-1) {
				return false
			}
		}
	}
	return true
}

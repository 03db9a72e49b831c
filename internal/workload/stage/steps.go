package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Act is an action of a played Stage. One of its fields is set.
type Act struct {
	Event *Event
	// Patch patches the object that the Stage is played for.
	Patch *Patch
	// Apply creates another object, or patches it if it exists.
	Apply *Patch
	// Delete deletes the object, without grace period.
	Delete bool
}

// Patch is a patch of an object. As is the user to impersonate; nil means the player's own user.
type Patch struct {
	Type        types.PatchType
	Subresource string
	Data        []byte
	As          *Another
}

// compile checks a step of a Stage for objects of a kind.
func (d stepSpec) compile(of schema.GroupVersionKind) (s step, err error) {
	s.stepSpec = d
	var errs []error
	if e := d.Event; e != nil && e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, fmt.Errorf("event.type: %q is neither Normal nor Warning", e.Type))
	}
	if d.Patch != nil {
		err = d.Patch.check("json", "merge", "strategic")
		if err == nil && d.Patch.kind(of) == types.StrategicMergePatchType && custom(of) {
			err = errors.New("type: strategic is for the kinds of Kubernetes: use merge or json")
		}
		if err == nil {
			s.patch, err = parseTemplate(d.Patch.Template)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("patch.%w", err))
		}
	}
	if d.Apply != nil {
		if err = d.Apply.check("apply", "merge", "strategic"); err == nil && d.Apply.Root != "" {
			err = errors.New("root: a template of apply writes a whole object")
		}
		if err == nil {
			s.apply, err = parseTemplate(d.Apply.Template)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("apply.%w", err))
		}
	}
	return s, errors.Join(errs...)
}

// custom reports whether a kind is custom, by its group: groups of Kubernetes have no dot, or a suffix of Kubernetes.
func custom(of schema.GroupVersionKind) bool {
	return slices.Contains([]byte(of.Group), '.') && !isKubernetes(of.Group)
}

func isKubernetes(group string) bool {
	const suffix = ".k8s.io"
	return len(group) > len(suffix) && group[len(group)-len(suffix):] == suffix && group != Group
}

func (d *patchSpec) check(fields ...string) error {
	if d.Type != nil && !slices.Contains(fields, *d.Type) {
		return fmt.Errorf("type: %q is unknown: use one of %q", *d.Type, fields)
	}
	if d.Impersonation != nil && d.Impersonation.Username == "" {
		return errors.New("impersonation.username: missing")
	}
	return nil
}

// kind returns the type of a patch of an object of a kind.
func (d *patchSpec) kind(of schema.GroupVersionKind) types.PatchType {
	switch {
	case d.Type != nil:
		return patchTypes[*d.Type]
	case of.Group == "" && (of.Kind == "Pod" || of.Kind == "Node"):
		return types.StrategicMergePatchType
	}
	return types.MergePatchType
}

// Steps returns the actions for an object, in order. Templates see the object as it is before the first action.
func (s *Stage) Steps(o *Object, with Functions) ([]Act, error) {
	var out []Act
	deleted := false
	for i := range s.steps {
		one := &s.steps[i]
		if one.Event != nil {
			out = append(out, Act{Event: one.Event})
		}
		if deleted {
			continue // nothing else can follow a deletion
		}
		acts, err := one.acts(s.Of, o, with)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		out, deleted = append(out, acts...), one.Delete
	}
	return out, nil
}

// acts returns the actions of a step other than its event. A step that deletes does nothing else.
func (s *step) acts(of schema.GroupVersionKind, o *Object, with Functions) (out []Act, err error) {
	if s.Finalizers != nil {
		if ops := s.Finalizers.operations(o.Finalizers); len(ops) > 0 {
			data, err := json.Marshal(ops)
			if err != nil {
				return nil, err
			}
			out = append(out, Act{Patch: &Patch{Type: types.JSONPatchType, Data: data}})
		}
	}
	if s.Delete {
		return append(out, Act{Delete: true}), nil
	}
	if s.Patch != nil {
		p := &Patch{Type: s.Patch.kind(of), Subresource: s.Patch.Subresource, As: s.Patch.Impersonation}
		if p.Data, err = render(s.patch, o, with); err == nil {
			p.Data, err = below(s.Patch.Root, p.Type, p.Data)
		}
		if err != nil {
			return nil, fmt.Errorf("patch: %w", err)
		}
		out = append(out, Act{Patch: p})
	}
	if s.Apply != nil {
		p := &Patch{Type: types.ApplyPatchType, Subresource: s.Apply.Subresource, As: s.Apply.Impersonation}
		if s.Apply.Type != nil {
			p.Type = patchTypes[*s.Apply.Type]
		}
		if p.Data, err = render(s.apply, o, with); err != nil {
			return nil, fmt.Errorf("apply: %w", err)
		}
		out = append(out, Act{Apply: p})
	}
	return out, nil
}

// below turns a patch for the field root into a patch for the whole object; root "" means the whole object.
func below(root string, kind types.PatchType, data []byte) ([]byte, error) {
	switch {
	case root == "":
		return data, nil
	case kind != types.JSONPatchType:
		return json.Marshal(map[string]json.RawMessage{root: data})
	}
	var ops []operation
	if err := json.Unmarshal(data, &ops); err != nil {
		return nil, err
	}
	for i := range ops {
		ops[i].Path = "/" + root + ops[i].Path
	}
	return json.Marshal(ops)
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
	From  string          `json:"from,omitempty"`
}

// operations returns the JSON patch that turns the finalizers of an object into the requested ones.
func (f *finalizersSpec) operations(have []string) []operation {
	const path = "/metadata/finalizers"
	var add []string
	for _, one := range f.Add {
		add = append(add, one.Value)
	}
	var removed []operation // from the end, so that the remaining indexes stay valid
	for i, one := range slices.Backward(have) {
		if slices.Contains(f.Remove, finalizer{one}) {
			removed = append(removed, operation{Op: "remove", Path: path + "/" + strconv.Itoa(i)})
		}
	}
	if f.Empty || len(f.Remove) > 0 && len(removed) == len(have) {
		removed = nil
		if len(have) > 0 {
			removed = []operation{{Op: "remove", Path: path}}
		}
		have = nil
	}
	switch {
	case len(add) == 0:
		return removed
	case len(have) == 0:
		return append(removed, operation{Op: "add", Path: path, Value: text(add)})
	}
	for _, one := range add {
		if !slices.Contains(have, one) {
			removed = append(removed, operation{Op: "add", Path: path + "/-", Value: text(one)})
		}
	}
	return removed
}

// text returns a text, or several, as JSON.
func text(v any) json.RawMessage {
	data, _ := json.Marshal(v) // strings always encode
	return data
}

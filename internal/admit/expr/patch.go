package expr

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
)

// Operation is one operation of a JSON patch. Value is JSON, nil if there is none.
type Operation struct {
	Op, Path, From string
	Value          json.RawMessage
}

// AppliedFields returns a result of type Applied as decoded JSON.
func (r Result) AppliedFields() (map[string]any, error) {
	v, ok := r.Value.(*dynamic.ObjectVal)
	if !ok {
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %v", r.Value.Type())
	}
	// The compiler accepts Object.spec{…} in place of Object.status.
	if err := v.CheckTypeNamesMatchFieldPathNames(); err != nil {
		return nil, fmt.Errorf("type mismatch: %w", err)
	}
	fields, ok := v.Value().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid return type: %T", v)
	}
	return fields, nil
}

// Operations returns a result of type JSONPatches.
func (r Result) Operations() ([]Operation, error) {
	list, ok := r.Value.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array")
	}
	var out []Operation
	for it := list.Iterator(); it.HasNext() == types.True; {
		e, ok := it.Next().(*mutation.JSONPatchVal)
		if !ok {
			return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
		}
		o := Operation{Op: e.Op, Path: e.Path, From: e.From}
		if e.Val != nil {
			if v, ok := e.Val.(*dynamic.ObjectVal); ok {
				if err := v.CheckTypeNamesMatchFieldPathNames(); err != nil {
					return nil, fmt.Errorf("type mismatch: %w", err)
				}
			}
			v, err := e.Val.ConvertToNative(reflect.TypeFor[*structpb.Value]())
			if err == nil {
				o.Value, err = json.Marshal(v)
			}
			if err != nil {
				return nil,
					fmt.Errorf("JSONPath valueExpression evaluated to a type that could not marshal to JSON: %w", err)
			}
		}
		out = append(out, o)
	}
	return out, nil
}

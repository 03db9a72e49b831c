// Package plain turns the results of expressions into decoded JSON. It is pure.
package plain

import (
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// most is the number of values in a result.
const most = 100_000

var errResult = errors.New("the result is not a JSON value, or too large")

// JSON returns a result that is a value of JSON.
func JSON(v ref.Val) (any, error) {
	left := most
	return jsonOf(v, &left)
}

// Cell returns a result for a column of a table, and false for null and an empty optional value. Times are texts.
func Cell(v ref.Val) (any, bool) {
	switch v := v.(type) {
	case types.Null:
		return nil, false
	case *types.Optional:
		if !v.HasValue() {
			return nil, false
		}
		return Cell(v.GetValue())
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339), true
	case types.Duration:
		return v.Duration.String(), true
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), true
	case types.Uint:
		return int64(v), true //nolint:gosec // no column shows such a number exactly
	case traits.Mapper:
		if m, ok := v.Value().(map[string]any); ok {
			return m, true // a part of the object, with its names as they are in JSON
		}
	}
	out, err := JSON(v)
	return out, err == nil
}

// jsonOf returns the result of an expression as decoded JSON, of at most left values.
func jsonOf(v ref.Val, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, errResult
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.String:
		return string(v), nil
	case types.Int:
		return int64(v), nil
	case types.Double:
		if n := int64(v); types.Double(n) == v {
			return n, nil
		}
		return float64(v), nil
	case types.Bool:
		return bool(v), nil
	case traits.Mapper:
		return objectOf(v, left)
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			item, err := jsonOf(it.Next(), left)
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		return out, nil
	}
	return nil, errResult
}

func objectOf(m traits.Mapper, left *int) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, errResult
		}
		value, err := jsonOf(m.Get(key), left)
		if err != nil {
			return nil, err
		}
		out[string(name)] = value
	}
	return out, nil
}

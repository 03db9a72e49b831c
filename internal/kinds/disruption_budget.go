package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// oldEmptySelector is a label that nothing has. In policy/v1beta1 an empty selector of a PodDisruptionBudget matched
// no pod, in policy/v1 it matches all; with this label each version can say what the other says by an empty one.
const oldEmptySelector = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"

// budgetForm reads what an older kube-apiserver has stored of PodDisruptionBudgets, in policy/v1beta1.
func budgetForm() *catalog.Form {
	older := storedAs("policy", "v1", "v1beta1").Decode
	return &catalog.Form{
		Encode: func(doc []byte) ([]byte, error) { return doc, nil },
		Decode: func(raw []byte) ([]byte, error) {
			doc, err := older(raw)
			if err != nil || bytes.Equal(doc, raw) {
				return raw, err
			}
			v, err := codec.DecodeJSON(doc)
			if err != nil {
				return nil, fmt.Errorf("decode PodDisruptionBudget: %w", err)
			}
			budget, _ := v.(catalog.Object)
			selector, _ := catalog.At(budget, "spec")["selector"].(catalog.Object)
			if selector == nil {
				return doc, nil
			}
			switch {
			case selectsAll(selector):
				selector["matchExpressions"] = []any{catalog.Object{"key": oldEmptySelector, "operator": "Exists"}}
			case isSolely(selector, "DoesNotExist"):
				clear(selector)
			default:
				withoutOldEmptySelector(selector)
			}
			return json.Marshal(budget)
		},
	}
}

// defaultBudget takes the label out of selectors that say something else, too.
func defaultBudget(obj catalog.Object) {
	if selector, _ := catalog.At(obj, "spec")["selector"].(catalog.Object); selector != nil &&
		!isSolely(selector, "Exists") {
		withoutOldEmptySelector(selector)
	}
}

func selectsAll(selector catalog.Object) bool {
	return len(catalog.At(selector, "matchLabels")) == 0 && len(catalog.Objects(selector["matchExpressions"])) == 0
}

// isSolely tells whether a selector asks that the label is there, or that it is not, and nothing else.
func isSolely(selector catalog.Object, operator string) bool {
	expressions := catalog.Objects(selector["matchExpressions"])
	if len(catalog.At(selector, "matchLabels")) > 0 || len(expressions) != 1 {
		return false
	}
	values, _ := expressions[0]["values"].([]any)
	return catalog.Text(expressions[0], "key") == oldEmptySelector &&
		catalog.Text(expressions[0], "operator") == operator && len(values) == 0
}

func withoutOldEmptySelector(selector catalog.Object) {
	expressions, _ := selector["matchExpressions"].([]any)
	kept := slices.DeleteFunc(slices.Clone(expressions), func(e any) bool {
		expression, ok := e.(catalog.Object)
		return ok && catalog.Text(expression, "key") == oldEmptySelector
	})
	switch len(kept) {
	case len(expressions):
	case 0:
		delete(selector, "matchExpressions")
	default:
		selector["matchExpressions"] = kept
	}
}

package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

func podDisruptionBudgetKind() rule.Kind {
	return rule.Of[policyv1.PodDisruptionBudget](rule.Kind{
		Group: policyV1, Kind: "PodDisruptionBudget", Plural: "poddisruptionbudgets", Short: []string{"pdb"},
		AnyFinalizer: true, Status: true, Generation: true,
		Form: budgetForm(), DropGated: cleanSelector,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(budgetCells), ValidName: rule.NameIsSegment, MetadataLast: true,
		},
	})
}

func budgetCells(b *policyv1.PodDisruptionBudget, e catalog.Env) []any {
	least, most := "N/A", "N/A"
	if b.Spec.MinAvailable != nil {
		least = b.Spec.MinAvailable.String()
	}
	if b.Spec.MaxUnavailable != nil {
		most = b.Spec.MaxUnavailable.String()
	}
	return []any{b.Name, least, most, int64(b.Status.DisruptionsAllowed), rule.Ago(b.CreationTimestamp, e)}
}

// oldEmptySelector is a label that no pod has. In policy/v1beta1 an empty selector of a PodDisruptionBudget matched no
// pod, in policy/v1 it matches all; with this label each version can express the other's empty selector.
const oldEmptySelector = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"

// budgetForm decodes PodDisruptionBudgets that an older kube-apiserver has stored in policy/v1beta1.
func budgetForm() *catalog.Form {
	older := rule.StoredAs("policy", "v1", "v1beta1").Decode
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
			budget, _ := v.(object.Object)
			selector, _ := object.Map(budget, "spec")["selector"].(object.Object)
			if selector == nil {
				return doc, nil
			}
			switch {
			case selectsAll(selector):
				selector["matchExpressions"] = []any{object.Object{"key": oldEmptySelector, "operator": "Exists"}}
			case isSolely(selector, "DoesNotExist"):
				clear(selector)
			default:
				withoutOldEmptySelector(selector)
			}
			return json.Marshal(budget)
		},
	}
}

// cleanSelector removes the label from a new selector with other requirements.
func cleanSelector(obj, old object.Object) {
	selector, _ := object.Map(obj, "spec")["selector"].(object.Object)
	if selector == nil || isSolely(selector, "Exists") ||
		old != nil && rule.Equivalent(selector, object.Map(old, "spec")["selector"]) {
		return
	}
	withoutOldEmptySelector(selector)
}

func selectsAll(selector object.Object) bool {
	return len(object.Map(selector, "matchLabels")) == 0 && len(object.Objects(selector["matchExpressions"])) == 0
}

// isSolely reports whether a selector only requires that the label exists, or only that it does not.
func isSolely(selector object.Object, operator string) bool {
	expressions := object.Objects(selector["matchExpressions"])
	if len(object.Map(selector, "matchLabels")) > 0 || len(expressions) != 1 {
		return false
	}
	values, _ := expressions[0]["values"].([]any)
	return object.String(expressions[0], "key") == oldEmptySelector &&
		object.String(expressions[0], "operator") == operator && len(values) == 0
}

func withoutOldEmptySelector(selector object.Object) {
	expressions, _ := selector["matchExpressions"].([]any)
	kept := slices.DeleteFunc(slices.Clone(expressions), func(e any) bool {
		expression, ok := e.(object.Object)
		return ok && object.String(expression, "key") == oldEmptySelector
	})
	switch len(kept) {
	case len(expressions):
	case 0:
		delete(selector, "matchExpressions")
	default:
		selector["matchExpressions"] = kept
	}
}

var policyV1 = rule.Group{Name: "policy", Version: "v1", Priority: 17100, Rank: 15}

func budget(val *rule.Validation, p rule.Value) {
	if p.Object()["minAvailable"] != nil && p.Object()["maxUnavailable"] != nil {
		val.Invalid(p.Path, p.Object(), "minAvailable and maxUnavailable cannot be both set")
	}
}

func conditions(val *rule.Validation, p rule.Value) {
	val.Errs = append(val.Errs, unversioned.ValidateConditions(rule.As[[]metav1.Condition](p.New), p.Path)...)
}

// percent validates a count or a share of at most all.
func percent(val *rule.Validation, p rule.Value) {
	rule.CheckCount(val, p)
	rule.CheckAtMostAll(val, p)
}

// podDisruptionBudgetFunctions are the functions that pod_disruption_budget.txt names.
func podDisruptionBudgetFunctions() rule.Functions {
	return rule.Functions{
		"budget":     budget,
		"conditions": conditions,
		"percent":    percent,
	}
}

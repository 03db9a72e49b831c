package policy

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// An empty selector means the opposite in the older version. Source: the conversions in
// k8s.io/kubernetes/pkg/apis/policy/v1beta1; test/oracle-builtins compares both.
func TestBudgetForm(t *testing.T) {
	t.Parallel()
	form := budgetForm()
	doc := func(version, selector string) string {
		return `{"apiVersion":"policy/` + version + `","kind":"PodDisruptionBudget","metadata":{"name":"a"},"spec":{` +
			selector + `}}`
	}
	const label = `"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"`
	for _, c := range []struct{ beta, v1 string }{
		{``, ``},
		{`"selector":null`, `"selector":null`},
		{`"selector":{}`, `"selector":{"matchExpressions":[{` + label + `,"operator":"Exists"}]}`},
		{`"selector":{"matchLabels":{}}`, `"selector":{"matchExpressions":[{` + label +
			`,"operator":"Exists"}],"matchLabels":{}}`},
		{`"selector":{"matchExpressions":[{` + label + `,"operator":"DoesNotExist"}]}`, `"selector":{}`},
		{`"selector":{"matchExpressions":[{` + label + `,"operator":"Exists"}]}`, `"selector":{}`},
		{`"selector":{"matchExpressions":[{` + label + `,"operator":"DoesNotExist"}],"matchLabels":{"a":"b"}}`,
			`"selector":{"matchLabels":{"a":"b"}}`},
		{`"selector":{"matchLabels":{"a":"b"}}`, `"selector":{"matchLabels":{"a":"b"}}`},
	} {
		if got, err := form.Decode([]byte(doc("v1beta1", c.beta))); err != nil || string(got) != doc("v1", c.v1) {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.beta, err, got, doc("v1", c.v1))
		}
	}
	for _, same := range []string{doc("v1", `"selector":{}`), `{"apiVersion":"policy/v1beta1"}`} {
		if got, err := form.Decode([]byte(same)); err != nil || string(got) != same {
			t.Errorf("%s: %v %s", same, err, got)
		}
	}
	if got, err := form.Decode([]byte(`{"apiVersion":"policy/v1beta1","metadata":`)); err == nil {
		t.Errorf("broken: %s", got)
	}
	if got, err := form.Encode([]byte(doc("v1", ``))); err != nil || string(got) != doc("v1", ``) {
		t.Errorf("stored: %v %s", err, got)
	}
}

// TestCleanSelector checks that the label is removed from new selectors, unless it is the only requirement.
func TestCleanSelector(t *testing.T) {
	t.Parallel()
	old := func(operator string) catalog.Object {
		return catalog.Object{"key": oldEmptySelector, "operator": operator}
	}
	other := catalog.Object{"key": "a", "operator": "Exists"}
	for _, c := range []struct{ selector, want catalog.Object }{
		{catalog.Object{}, catalog.Object{}},
		{catalog.Object{"matchExpressions": []any{old("Exists")}},
			catalog.Object{"matchExpressions": []any{old("Exists")}}},
		{catalog.Object{"matchExpressions": []any{old("DoesNotExist")}}, catalog.Object{}},
		{catalog.Object{"matchExpressions": []any{old("Exists"), other}},
			catalog.Object{"matchExpressions": []any{other}}},
		{catalog.Object{"matchExpressions": []any{old("Exists")}, "matchLabels": catalog.Object{"a": "b"}},
			catalog.Object{"matchLabels": catalog.Object{"a": "b"}}},
	} {
		obj := catalog.Object{"spec": catalog.Object{"selector": c.selector}}
		cleanSelector(obj, nil)
		if got, want := codec.AppendJSON(nil, obj),
			codec.AppendJSON(nil,
				catalog.Object{"spec": catalog.Object{"selector": c.want}}); string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	stored := func() catalog.Object {
		selector := catalog.Object{"matchExpressions": []any{old("DoesNotExist"), other}}
		return catalog.Object{"spec": catalog.Object{"selector": selector}}
	}
	kept := stored()
	cleanSelector(kept, stored())
	if got, want := codec.AppendJSON(nil, kept), codec.AppendJSON(nil, stored()); string(got) != string(want) {
		t.Errorf("unchanged: got %s, want %s", got, want)
	}
}

package audit

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"

	"github.com/bowsprit/bowsprit/internal/request"
)

const head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

func TestPolicyLevels(t *testing.T) {
	t.Parallel()
	p, err := parsePolicy([]byte(head + `
rules:
- level: None
  resources: [{group: "", resources: [events]}]
- level: RequestResponse
  changes: JSONPatch
  resources: [{group: "", resources: [secrets]}]
- level: RequestResponse
  resources: [{group: apps}]
- level: Metadata
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		info request.Info
		want auditapi.Level
	}{
		{request.Info{IsResource: true, Resource: "events"}, auditapi.LevelNone},
		{request.Info{IsResource: true, Resource: "secrets"}, levelPatch},
		{request.Info{IsResource: true, Group: "apps", Resource: "deployments"}, auditapi.LevelRequestResponse},
		{request.Info{Path: "/healthz"}, auditapi.LevelMetadata},
	} {
		if got := p.EvaluatePolicyRule(attributes{&Received{Info: &c.info}}).Level; got != c.want {
			t.Errorf("%+v: level %s, want %s", c.info, got, c.want)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ policy, want string }{
		{head + "rules:\n- level: Everything\n", "Unsupported value"},
		{head + "rules: []\n", "loaded illegal policy with 0 rules"},
		{"kind: Policy\nrules:\n- level: Metadata\n", "unknown group version field"},
		{head + "rules:\n- level: RequestResponse\n  changes: Diff\n", "rules[0].changes: unknown value Diff"},
		{head + "rules:\n- level: None\n- level: Request\n  changes: JSONPatch\n",
			"rules[1].changes: a patch shows the stored object, so the level must be RequestResponse"},
		{head + "rules:\n- level: Metadata\n  nonResourceURLs: [healthz]\n", "must begin with a '/' character"},
	} {
		if _, err := parsePolicy([]byte(c.policy)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("policy\n%s\ngot error %v, want %s", c.policy, err, c.want)
		}
	}
	if _, err := loadPolicy("/nowhere"); err == nil || !strings.Contains(err.Error(), `"/nowhere"`) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestPolicyUnconditional checks that a policy with an unconditional first rule gives the same results as Kubernetes'
// evaluator. A rule with any field that selects requests is not unconditional.
func TestPolicyUnconditional(t *testing.T) {
	t.Parallel()
	for _, rules := range []string{
		"- level: Metadata\n", "- level: None\n- level: Metadata\n",
		"- level: Request\n  omitStages: [RequestReceived]\n  omitManagedFields: true\n- level: None\n",
	} {
		text := []byte(head + "omitStages: [Panic]\nomitManagedFields: false\nrules:\n" + rules)
		ours, err := parsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ours.(constant); !ok {
			t.Errorf("%s: is asked about each request", rules)
		}
		parsed, err := policy.LoadPolicyFromBytes(text)
		if err != nil {
			t.Fatal(err)
		}
		query := attributes{&Received{Info: &request.Info{IsResource: true, Resource: "pods", Verb: "get"}}}
		got, want := ours.EvaluatePolicyRule(query), policy.NewPolicyRuleEvaluator(parsed).EvaluatePolicyRule(query)
		slices.Sort(got.OmitStages) // they are sets
		slices.Sort(want.OmitStages)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", rules, got, want)
		}
	}
	kind := reflect.TypeFor[auditapi.PolicyRule]()
	for i := range kind.NumField() {
		var rule auditapi.PolicyRule
		field := reflect.ValueOf(&rule).Elem().Field(i)
		if field.Kind() == reflect.Slice {
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		}
		wanted := map[string]bool{"Level": true, "OmitStages": true, "OmitManagedFields": true}
		if name := kind.Field(i).Name; unconditional(&rule) != wanted[name] {
			t.Errorf("a rule with %s: about everything is %t", name, unconditional(&rule))
		}
	}
}

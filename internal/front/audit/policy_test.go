package audit

import (
	"strings"
	"testing"

	auditapi "k8s.io/apiserver/pkg/apis/audit"

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
		{head + "rules:\n- level: RequestResponse\n  changes: Diff\n", "rules[0].changes: Diff is not known"},
		{head + "rules:\n- level: None\n- level: Request\n  changes: JSONPatch\n",
			"rules[1].changes: a patch shows what was stored, so the level must be RequestResponse"},
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

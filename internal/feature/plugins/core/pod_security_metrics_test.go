package core_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/pod-security-admission/admission/api/load"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/testing/plugintest"
)

// TestPodSecurityMetrics checks the counters for pods in namespaces of different levels.
func TestPodSecurityMetrics(t *testing.T) {
	t.Parallel()
	namespace := func(name, labels string) json.RawMessage {
		return json.RawMessage(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `","labels":{` + labels + `}}}`)
	}
	const label = `"pod-security.kubernetes.io/`
	_, view := plugintest.Open(t, []json.RawMessage{
		namespace("free", ``),
		namespace("strict", label+`enforce":"restricted",`+label+`enforce-version":"v1.25"`),
		namespace("future", label+`enforce":"baseline",`+label+`enforce-version":"v1.99"`),
		namespace("warned", label+`warn":"restricted",`+label+`audit":"restricted"`),
		namespace("exempt", ``), namespace("broken", label+`enforce":"odd"`),
	})
	configuration, err := load.LoadFromData([]byte(`{"apiVersion":"pod-security.admission.config.k8s.io/v1",` +
		`"kind":"PodSecurityConfiguration","exemptions":{"namespaces":["exempt"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	p := plugintest.Find(t, "PodSecurity", plugin.Config{View: view, PodSecurity: configuration, Metrics: registry})
	for _, in := range []string{"free", "strict", "future", "warned", "exempt", "broken", "absent"} {
		for _, of := range []string{
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"` + in + `"},"spec":{"containers":[{"name":"c","image":"i"}]}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"` + in +
				`"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
		} {
			a := plugintest.Attributes(t, admit.Create, "", plugintest.Tree(t, []byte(of)), nil)
			a.User, a.Warn = &user.DefaultInfo{Name: "me"}, func(string) {}
			_ = p.Validate(t.Context(), a) // rejected pods are counted too
		}
	}
	want := `
# HELP pod_security_errors_total Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted profile being used for evaluation.
# TYPE pod_security_errors_total counter
pod_security_errors_total{fatal="false",request_operation="create",resource="controller",subresource=""} 1
pod_security_errors_total{fatal="false",request_operation="create",resource="pod",subresource=""} 1
pod_security_errors_total{fatal="true",request_operation="create",resource="controller",subresource=""} 1
pod_security_errors_total{fatal="true",request_operation="create",resource="pod",subresource=""} 1
# HELP pod_security_evaluations_total Number of policy evaluations that occurred, not counting ignored or exempt requests.
# TYPE pod_security_evaluations_total counter
pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="baseline",policy_version="future",request_operation="create",resource="pod",subresource=""} 1
pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="privileged",policy_version="latest",request_operation="create",resource="pod",subresource=""} 2
pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="privileged",policy_version="latest",request_operation="update",resource="pod",subresource=""} 0
pod_security_evaluations_total{decision="deny",mode="audit",policy_level="restricted",policy_version="latest",request_operation="create",resource="controller",subresource=""} 1
pod_security_evaluations_total{decision="deny",mode="audit",policy_level="restricted",policy_version="latest",request_operation="create",resource="pod",subresource=""} 1
pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="restricted",policy_version="latest",request_operation="create",resource="pod",subresource=""} 1
pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="restricted",policy_version="v1.25",request_operation="create",resource="pod",subresource=""} 1
pod_security_evaluations_total{decision="deny",mode="warn",policy_level="restricted",policy_version="latest",request_operation="create",resource="controller",subresource=""} 1
pod_security_evaluations_total{decision="deny",mode="warn",policy_level="restricted",policy_version="latest",request_operation="create",resource="pod",subresource=""} 1
pod_security_evaluations_total{decision="deny",mode="warn",policy_level="restricted",policy_version="v1.25",request_operation="create",resource="controller",subresource=""} 1
# HELP pod_security_exemptions_total Number of exempt requests, not counting ignored or out of scope requests.
# TYPE pod_security_exemptions_total counter
pod_security_exemptions_total{request_operation="create",resource="controller",subresource=""} 1
pod_security_exemptions_total{request_operation="create",resource="pod",subresource=""} 1
pod_security_exemptions_total{request_operation="update",resource="controller",subresource=""} 0
pod_security_exemptions_total{request_operation="update",resource="pod",subresource=""} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestAnyAudience checks that without the restriction a kubelet gets tokens for audiences that no volume requests.
func TestAnyAudience(t *testing.T) {
	t.Parallel()
	_, view := plugintest.Open(t, []json.RawMessage{json.RawMessage(
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"ns","uid":"1"},"spec":{"nodeName":"n1"}}`)})
	for _, any := range []bool{false, true} {
		p := plugintest.Find(t, "NodeRestriction", plugin.Config{View: view, Authz: authz.Union{}, AnyAudience: any})
		a := plugintest.Attributes(t, admit.Create, "token", plugintest.Tree(t, []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest",`+
			`"metadata":{"name":"default","namespace":"ns"},"spec":{"audiences":["x"],`+
			`"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"}}}`)), nil)
		a.User = &user.DefaultInfo{Name: "system:node:n1", Groups: []string{"system:nodes"}}
		if err := p.Mutate(t.Context(), a); (err == nil) != any {
			t.Errorf("any audience %v: %v", any, err)
		}
	}
}

package oraclebuiltins

import (
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/kinds/apiregistration"
)

// apiServices are the aggregator's strategies for an APIService and its status.
func apiServices() (rest.CreateUpdateResetFieldsStrategy, rest.UpdateResetFieldsStrategy) {
	install.Install(legacyscheme.Scheme)
	return apiservice.NewStrategy(legacyscheme.Scheme), apiservice.NewStatusStrategy(legacyscheme.Scheme)
}

// TestAPIServices mutates valid APIServices at random, and compares the results with kube-aggregator's. It is not
// parallel, because it adds to the scheme that other tests read.
func TestAPIServices(t *testing.T) {
	strategies["APIService"], parts["APIService/status"] = apiServices()
	t.Cleanup(func() {
		delete(strategies, "APIService")
		delete(parts, "APIService/status")
	})
	for i, text := range []string{`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.example.com, labels: {a: b}}
spec: {group: example.com, version: v1, groupPriorityMinimum: 1000, versionPriority: 15}
status:
  conditions: [{type: Available, status: "True", reason: Local, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.example.com}
spec:
  group: example.com
  version: v1beta1
  groupPriorityMinimum: 20000
  versionPriority: 1000
  caBundle: YQ==
  service: {namespace: a, name: b, port: 8443}
`, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.}
spec:
  version: v1
  groupPriorityMinimum: 1
  versionPriority: 1
  insecureSkipTLSVerify: true
  service: {namespace: a, name: b}
`} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			data, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			(&comparison{t: t, r: apiregistration.Kinds()[0], kind: "APIService"}).breakAll(tree(t, data))
		})
	}
}

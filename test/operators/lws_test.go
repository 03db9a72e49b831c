package operators

import "testing"

// pulled delays the start of a LeaderWorkerSet's pods as if a node pulled their images, because the suite checks four
// times a second for states that exist only during a rollout. A missing image is never pulled.
const pulled = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: pulled}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  reinvocationPolicy: Never
  failurePolicy: Fail
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{annotations: {
          "bowsprit.dev/simulate-start-delay": "1s",
          "bowsprit.dev/simulate-pull-failure":
            string(object.spec.containers.exists(c, c.image.startsWith("not-exist-image:")))}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: pulled}
spec:
  policyName: pulled
  matchResources:
    objectSelector: {matchExpressions: [{key: leaderworkerset.sigs.k8s.io/name, operator: Exists}]}
`

// TestLeaderWorkerSet runs LeaderWorkerSet's own end-to-end tests: groups of StatefulSets become ready, roll out and
// restart. One test reads the operator's metrics from a program in a pod.
func TestLeaderWorkerSet(t *testing.T) {
	t.Parallel()
	ctx, s := bounded(t), start(t, "--simulate=nodes=3")
	s.create(ctx, t, pulled)
	managed{name: "lws", module: "sigs.k8s.io/lws", options: "config.lws.x-k8s.io/v1alpha1"}.install(ctx, t, s)
	s.suite(t, "lws-suite", t.TempDir(), "-ginkgo.no-color", "-ginkgo.timeout=8m", "-ginkgo.skip=metrics endpoint")
}

package operators

import "testing"

// pulled has the pods of a LeaderWorkerSet start as slowly as on a node that pulls their images, since the suite looks
// four times a second for what is there only during a rollout; an image that is not there is not pulled.
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

// TestLeaderWorkerSet runs the end-to-end tests of LeaderWorkerSet's authors, whose groups of StatefulSets become
// ready, roll out and start anew. One of them reads the operator's metrics from a program in a pod.
func TestLeaderWorkerSet(t *testing.T) {
	t.Parallel()
	ctx, s := bounded(t), start(t, "--simulate=nodes=3")
	s.create(ctx, t, pulled)
	managed{name: "lws", module: "sigs.k8s.io/lws", options: "config.lws.x-k8s.io/v1alpha1"}.install(ctx, t, s)
	s.suite(t, "lws-suite", t.TempDir(), "-ginkgo.no-color", "-ginkgo.timeout=8m", "-ginkgo.skip=metrics endpoint")
}

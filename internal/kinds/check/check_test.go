package check_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/kinds/check"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

const deployment = `
metadata: {name: a}
spec:
  replicas: 1
  selector: {matchLabels: {app: x}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
  template:
    metadata: {labels: {app: x}}
    spec:
      restartPolicy: Always
      dnsPolicy: ClusterFirst
      terminationGracePeriodSeconds: 30
      containers: [{name: c, image: i, imagePullPolicy: Always, terminationMessagePolicy: File, resources: {limits: {cpu: "1"}}}]
`

// TestChecks shows each operator of the text at work. That the lines are right is for test/oracle-builtins to show.
func TestChecks(t *testing.T) {
	t.Parallel()
	c := check.New()
	for _, s := range []struct{ name, kind, obj, old, subresource, want string }{
		{"valid", "Deployment", deployment, "", "", ""},
		{"required, formats, unions", "Pod",
			`{spec: {terminationGracePeriodSeconds: 1, restartPolicy: Always, dnsPolicy: Default, nodeName: A, volumes: [{name: v, nfs: {server: s, path: x}, csi: {}}]}}`, "", "",
			`[spec.volumes[0].nfs.path: Invalid value: "x": must be an absolute path, spec.volumes[0].csi: Forbidden: may not specify more than 1 volume type, spec.containers: Required value, ` +
				`spec.nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]`},
		{"immutable, only in updates", "RoleBinding",
			`{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}`,
			`{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: b}}`, "",
			`roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"a"}: cannot change roleRef`},
		{"a subresource has its own", "Deployment", `{status: {replicas: -1}}`, `{}`, "status",
			`[status.replicas: Invalid value: -1: must be greater than or equal to 0, status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas, ` +
				`status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas, status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas]`},
		{"numbers", "HorizontalPodAutoscaler",
			`{spec: {minReplicas: 0, maxReplicas: 1, metrics: [{type: External, external: {metric: {name: m}, target: {type: Value, value: "1"}}}], scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}}`, "", "", "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"},
		{"unknown kinds have no checks", "Anything", `{}`, "", "", ""},
	} {
		obj := object(t, s.obj)
		errs := c.Create(s.kind, obj)
		if s.old != "" {
			errs = c.Update(s.kind, obj, object(t, s.old), s.subresource)
		}
		got := ""
		if len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != s.want {
			t.Errorf("%s:\ngot  %s\nwant %s", s.name, got, s.want)
		}
	}
}

// BenchmarkCreate judges a valid deployment.
func BenchmarkCreate(b *testing.B) {
	c, obj := check.New(), object(b, deployment)
	b.ReportAllocs()
	for b.Loop() {
		if errs := c.Create("Deployment", obj); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

// BenchmarkParse is what the first object pays.
func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		check.New().Create("Nothing", nil)
	}
}

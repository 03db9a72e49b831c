package play_test

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	stages  = schema.GroupVersionResource{Group: "kwok.x-k8s.io", Version: "v1alpha1", Resource: "stages"}
	roles   = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	binding = schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings",
	}
)

// cluster is a server that simulates workloads, with a clock.
type cluster struct {
	*controltest.Cluster
	clock *testserver.Clock
}

func start(t *testing.T, settings string, configure ...func(*bowsprit.Config)) *cluster {
	t.Helper()
	clock := testserver.NewClock()
	configure = append(configure, testserver.WithClock(clock),
		testserver.WithWorkloads(strings.Fields("nodes=1 "+settings)...))
	return &cluster{controltest.Start(t, configure...), clock}
}

// withStages has the server have the definition of Stages.
func (c *cluster) withStages() *cluster {
	c.Helper()
	text, err := os.ReadFile("testdata/definition.yaml")
	if err != nil {
		c.Fatal(err)
	}
	c.make(controltest.Definitions, "", string(text))
	c.When(controltest.Definitions, "", "a definition that is served", func(all objects) bool {
		d := all["stages.kwok.x-k8s.io"]
		return d != nil && has(d, "Established", "True")
	})
	return c
}

type objects = map[string]*unstructured.Unstructured

// has reports whether an object has a condition with a status.
func has(u *unstructured.Unstructured, kind, status string) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind && m["status"] == status {
			return true
		}
	}
	return false
}

func (c *cluster) make(gvr schema.GroupVersionResource, namespace, text string) *unstructured.Unstructured {
	c.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		c.Fatal(err)
	}
	made, err := c.In(gvr, namespace).Create(c.Context(), u, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return made
}

// stage creates a Stage with a spec, given as YAML.
func (c *cluster) stage(name, spec string) *unstructured.Unstructured {
	c.Helper()
	return c.make(stages, "", "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: "+name+"}\nspec:\n  "+
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")+"\n")
}

// pod creates a pod with a label and annotations, given as YAML.
func (c *cluster) pod(name, label, annotations string) {
	c.Helper()
	c.make(controltest.Pods, "default", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: "+name+"\n  labels: {kind: \""+
		label+"\"}\n  annotations: {"+annotations+"}\nspec:\n  containers: [{name: main, image: i}]\n")
}

// until waits for a state of an object.
func (c *cluster) until(
	gvr schema.GroupVersionResource, namespace, name, desc string, is func(*unstructured.Unstructured) bool,
) *unstructured.Unstructured {
	c.Helper()
	var found *unstructured.Unstructured
	c.When(gvr, namespace, name+": "+desc, func(all objects) bool {
		found = all[name]
		return found != nil && is(found)
	})
	return found
}

// untilGone waits for the end of an object.
func (c *cluster) untilGone(gvr schema.GroupVersionResource, namespace, name string) {
	c.Helper()
	c.When(gvr, namespace, name+" to be gone", func(all objects) bool { return all[name] == nil })
}

// untilEvent waits for an event and returns its message.
func (c *cluster) untilEvent(about, reason string) string {
	c.Helper()
	message := ""
	c.When(controltest.Events, "default", "event "+reason+" about "+about, func(all objects) bool {
		for _, e := range all {
			name, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
			if name == about && e.Object["reason"] == reason {
				message, _ = e.Object["message"].(string)
				return true
			}
		}
		return false
	})
	return message
}

func accepted(u *unstructured.Unstructured) bool { return has(u, "Accepted", "True") }

func field(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

func phase(is string) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool { return field(u, "status", "phase") == is }
}

// TestFiles checks that Stages of files run pods alone, that delayed ones wait for the clock, and that their actions
// happen.
func TestFiles(t *testing.T) {
	c := start(t, "stages=testdata/pods")
	c.pod("slow", "", "")
	c.pod("fast", "", "delay: 0s")
	fast := c.until(controltest.Pods, "default", "fast", "Running", phase("Running"))
	if !has(fast, "Ready", "True") || !strings.HasPrefix(field(fast, "status", "podIP"), "10.24") ||
		field(fast, "status", "hostIP") == "" || fast.GetFinalizers()[0] != "example.com/held" ||
		len(fast.Object["status"].(map[string]any)["conditions"].([]any)) != 2 {
		t.Errorf("a pod that a Stage has started: %v", fast)
	}
	for _, f := range fast.GetManagedFields() {
		if f.Manager == "kubelet" {
			t.Errorf("a kubelet has written it too: %v", f)
		}
	}
	if got := c.untilEvent("fast", "StageStart"); got != "it starts" {
		t.Errorf("the event says %q", got)
	}
	c.until(controltest.Pods, "default", "slow", "on a node", func(u *unstructured.Unstructured) bool {
		return field(u, "spec", "nodeName") != ""
	})
	c.advanceUntil(time.Hour, controltest.Pods, "slow", phase("Running"))
	c.Delete(controltest.Pods, fast, "")
	c.untilGone(controltest.Pods, "default", "fast")
	c.untilEvent("fast", "StageStop")
}

// advanceUntil advances the clock until an object is in a state. It repeats the step, since one may precede the start
// of the delay.
func (c *cluster) advanceUntil(
	d time.Duration, gvr schema.GroupVersionResource, name string, is func(*unstructured.Unstructured) bool,
) {
	c.Helper()
	stop := controltest.Advancing(c.clock, d)
	namespace := "default"
	if gvr == controltest.Nodes {
		namespace = ""
	}
	c.until(gvr, namespace, name, "what comes with time", is)
	stop()
}

// TestWrongFiles checks that errors in files prevent the start of the server, and are reported.
func TestWrongFiles(t *testing.T) {
	t.Parallel()
	config := bowsprit.Config{Workloads: bowsprit.WorkloadsConfig{
		Simulate: map[string]string{"stages": "testdata/none.yaml"},
	}}
	if err := config.Validate(); err == nil || !strings.Contains(err.Error(), "stages=testdata/none.yaml: ") {
		t.Errorf("no file: %v", err)
	}
}

const always = `
resourceRef: {apiGroup: v1, kind: Pod}
selector:
  matchExpressions:
  - {key: .status.phase, operator: In, values: [Pending]}
next:
  statusTemplate: |
    phase: Running
    message: {{ .metadata.name | upper }}
`

// TestCreated checks that Stages of clients apply at once, to existing and new pods, and that pods run as before
// without them.
func TestCreated(t *testing.T) {
	c := start(t, "").withStages()
	c.pod("before", "", "")
	c.until(controltest.Pods, "default", "before", "ready", func(u *unstructured.Unstructured) bool {
		return has(u, "Ready", "True")
	})
	s := c.stage("always", always)
	c.pod("during", "", "")
	during := c.until(controltest.Pods, "default", "during", "Running", phase("Running"))
	if field(during, "status", "message") != "DURING" || has(during, "Ready", "True") {
		t.Errorf("a pod that a Stage has started: %v", during.Object["status"])
	}
	c.until(stages, "", "always", "accepted", accepted)
	c.Delete(stages, s, "")
	c.until(controltest.Pods, "default", "during", "ready", func(u *unstructured.Unstructured) bool {
		return has(u, "Ready", "True")
	})
	c.pod("after", "", "")
	c.until(controltest.Pods, "default", "after", "ready", func(u *unstructured.Unstructured) bool {
		return has(u, "Ready", "True")
	})
}

// TestWrong checks that an invalid Stage is ignored until it is fixed, and that its status and an event report it.
func TestWrong(t *testing.T) {
	c := start(t, "").withStages()
	c.stage("wrong", strings.Replace(always, "key: .status.phase", "key: '.status['", 1))
	bad := func(u *unstructured.Unstructured) bool { return has(u, "Accepted", "False") }
	u := c.until(stages, "", "wrong", "refused", bad)
	if got := c.untilEvent("wrong", "InvalidStage"); !strings.Contains(got, `matchExpressions[0]: jq ".status["`) {
		t.Errorf("the event says %q", got)
	}
	c.pod("one", "", "")
	c.until(controltest.Pods, "default", "one", "ready", func(u *unstructured.Unstructured) bool {
		return has(u, "Ready", "True")
	})
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(always), &spec); err != nil {
		t.Fatal(err)
	}
	u.Object["spec"] = spec
	if _, err := c.In(stages, "").Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.until(stages, "", "wrong", "accepted", accepted)
	c.pod("two", "", "")
	two := c.until(controltest.Pods, "default", "two", "Running", phase("Running"))
	if field(two, "status", "message") != "TWO" {
		t.Errorf("a pod that the Stage runs: %v", two.Object["status"])
	}
	c.stage("other", strings.Replace(always, "apiGroup: v1", "apiGroup: v2", 1))
	c.until(stages, "", "other", "refused beside one of another version", bad)
	c.Delete(stages, u, "")
	c.until(stages, "", "other", "accepted", accepted)
}

// TestFails checks that a Stage that fails for an object causes an event about the object, which stays unchanged.
func TestFails(t *testing.T) {
	c := start(t, "").withStages()
	c.stage("fails", strings.Replace(always, ".metadata.name | upper", "index .spec.containers 7", 1))
	c.pod("one", "", "")
	if got := c.untilEvent("one", "StageFailed"); !strings.Contains(got, "stage fails: step 0: patch: template:") ||
		!strings.Contains(got, "index of untyped nil") && !strings.Contains(got, "out of range") {
		t.Errorf("the event says %q", got)
	}
	c.stage("refused", strings.Replace(always, "message:", "qosClass: Impossible\n    message:", 1))
	c.pod("two", "", "")
	c.untilEvent("two", "StageFailed")
}

// TestAdditional checks that a Stage beside the built-in simulation runs the objects that it matches, and nothing else
// changes.
func TestAdditional(t *testing.T) {
	c := start(t, "").withStages()
	c.make(stages, "", `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: chaos, annotations: {bowsprit.dev/simulate-beside: "true"}}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {kind: doomed}
    matchExpressions:
    - {key: .status.phase, operator: In, values: [Running]}
  next:
    statusTemplate: |
      phase: Failed
      reason: Chaos
`)
	c.pod("doomed", "doomed", "")
	c.pod("well", "", "")
	c.until(controltest.Pods, "default", "doomed", "failed", phase("Failed"))
	c.until(controltest.Pods, "default", "well", "ready", func(u *unstructured.Unstructured) bool {
		return has(u, "Ready", "True")
	})
}

// TestNodes checks that Stages for nodes make them ready and keep them healthy, while the server renews their Leases.
func TestNodes(t *testing.T) {
	c := start(t, "stages=testdata/nodes cpu=3")
	n := c.until(controltest.Nodes, "", "node-0", "ready", func(u *unstructured.Unstructured) bool {
		taints, _, _ := unstructured.NestedSlice(u.Object, "spec", "taints")
		return has(u, "Ready", "True") && len(taints) == 0
	})
	if field(n, "status", "nodeInfo", "kubeletVersion") != "kwok-v0.8.0" ||
		field(n, "status", "capacity", "cpu") != "3" ||
		field(n, "status", "nodeInfo", "osImage") != "" || !has(n, "NetworkUnavailable", "False") {
		t.Errorf("a node that a Stage has made ready: %v", n.Object["status"])
	}
	beat := func(u *unstructured.Unstructured) string {
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		at, _ := conditions[0].(map[string]any)["lastHeartbeatTime"].(string)
		return at
	}
	first := beat(n)
	c.advanceUntil(11*time.Minute, controltest.Nodes, "node-0", func(u *unstructured.Unstructured) bool {
		return beat(u) != first
	})
	c.pod("one", "", "") // pods run as without Stages
	c.until(controltest.Pods, "default", "one", "ready", func(u *unstructured.Unstructured) bool {
		return has(u, "Ready", "True")
	})
}

// Objects of other kinds are written with the rights of kwok's service account.
func TestOtherKinds(t *testing.T) {
	c := start(t, "", func(c *bowsprit.Config) { c.Authorization.Modes = []string{"RBAC"} }).withStages()
	c.Create(controltest.Definitions, controltest.Definition("crontabs", "CronTab", "Namespaced"))
	c.stage("tabs", `
resourceRef: {apiGroup: stable.example.com/v1, kind: CronTab}
selector:
  matchExpressions:
  - {cel: {expression: '!has(self.done)'}}
steps:
- apply:
    template: |
      apiVersion: v1
      kind: ConfigMap
      metadata:
        name: of-{{ .metadata.name }}
      data:
        now: {{ Now | Quote }}
- apply:
    type: merge
    template: |
      {apiVersion: v1, kind: ConfigMap, metadata: {name: of-{{ .metadata.name }}}, data: {more: {{ .size | Quote }}}}
- patch:
    type: merge
    impersonation: {username: someone}
    template: '{"done": {{ add .size 1 }}}'
`)
	c.When(controltest.Definitions, "", "a definition that is served", func(all objects) bool {
		d := all["crontabs.stable.example.com"]
		return d != nil && has(d, "Established", "True")
	})
	const tab = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: NAME}\nsize: 3\n"
	c.make(controltest.Crontabs, "default", strings.Replace(tab, "NAME", "first", 1))
	want := `User "system:serviceaccount:kube-system:kwok-controller" cannot patch resource "configmaps"`
	if got := c.untilEvent("first", "StageFailed"); !strings.Contains(got, want) {
		t.Errorf("without a role the event says %q", got)
	}
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}\nrules:\n"
	const bind = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: NAME}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAME}\nsubjects:\n"
	c.make(roles, "", strings.Replace(role, "NAME", "maps", 1)+
		"- {apiGroups: [''], resources: [configmaps], verbs: [create, patch]}\n"+
		"- {apiGroups: [''], resources: [users], resourceNames: [someone], verbs: [impersonate]}\n")
	c.make(binding, "", strings.ReplaceAll(bind, "NAME", "maps")+
		"- {kind: ServiceAccount, namespace: kube-system, name: kwok-controller}\n")
	c.make(controltest.Crontabs, "default", strings.Replace(tab, "NAME", "second", 1))
	want = `User "someone" cannot patch resource "crontabs"`
	if got := c.untilEvent("second", "StageFailed"); !strings.Contains(got, want) {
		t.Errorf("without a role of the other user the event says %q", got)
	}
	c.make(roles, "", strings.Replace(role, "NAME", "tabs", 1)+
		"- {apiGroups: [stable.example.com], resources: [crontabs], verbs: [patch]}\n")
	c.make(binding, "", strings.ReplaceAll(bind, "NAME", "tabs")+
		"- {apiGroup: rbac.authorization.k8s.io, kind: User, name: someone}\n")
	c.make(controltest.Crontabs, "default", strings.Replace(tab, "NAME", "third", 1))
	done := c.until(controltest.Crontabs, "default", "third", "done", func(u *unstructured.Unstructured) bool {
		return u.Object["done"] != nil
	})
	if done.Object["done"] != int64(4) {
		t.Errorf("what the Stage has patched: %v", done)
	}
	made, err := c.In(controltest.ConfigMaps, "default").Get(t.Context(), "of-third", metav1.GetOptions{})
	if err != nil || field(made, "data", "now") == "" || field(made, "data", "more") != "3" {
		t.Errorf("what the Stage has applied: %v, %v", made, err)
	}
}

// TestMadeAnew checks that a recreated pod does not inherit the Stage of its predecessor.
func TestMadeAnew(t *testing.T) {
	c := start(t, "stages=testdata/pods")
	c.pod("one", "", "")
	c.until(controltest.Pods, "default", "one", "on a node", func(u *unstructured.Unstructured) bool {
		return field(u, "spec", "nodeName") != ""
	})
	old, err := c.In(controltest.Pods, "default").Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	none := int64(0)
	err = c.In(controltest.Pods, "default").Delete(t.Context(), "one", metav1.DeleteOptions{GracePeriodSeconds: &none})
	if err != nil {
		t.Fatal(err)
	}
	c.pod("one", "", "delay: 0s")
	u := c.until(controltest.Pods, "default", "one", "Running", phase("Running"))
	if u.GetUID() == old.GetUID() {
		t.Error("it is the old one")
	}
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := c.In(controltest.Pods, "default").Patch(t.Context(), "one", types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

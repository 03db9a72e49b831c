package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestSchedulersAgree runs each story of testdata/schedulers on a server with our scheduler and on one with an
// unmodified kube-scheduler, both with simulated kubelets, and compares the nodes of pods, the deleted pods, their
// conditions and the events. The stories run one after another, since messages count all nodes.
//
//	node NAME {KEYS}      has 4 CPUs, 8Gi, 110 pods and its name as label; keys are its spec's, labels and
//	                      has (further allocatable resources)
//	pod NAME {KEYS}       keys are its spec's, labels, tags (annotations) and cpu; waits until a scheduler has seen it
//	apply                 and the objects, in YAML, up to an empty line
//	patch KIND/NAME JSON, delete KIND/NAME, until KIND/NAME PATH=VALUE, same
//
// STORIES is a regular expression for the names of the stories to run.
func TestSchedulersAgree(t *testing.T) {
	benches := []*bench{newBench(t, "ours"), newBench(t, "kube-scheduler", "simulated-scheduler")}
	stories := storiesIn(t, "testdata/schedulers/*.txt", os.Getenv("STORIES"), 1)
	for _, one := range stories {
		t.Run(strings.ReplaceAll(one.name, " ", "-"), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience())
			defer cancel()
			if err := runBenches(ctx, benches, one.lines); err != nil {
				t.Error(err)
			}
			if err := cleanBenches(context.WithoutCancel(ctx), benches); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Logf("%d stories", len(stories))
}

// scheduled are the kinds that schedulers read.
var scheduled = scheduledKinds()

func scheduledKinds() map[string]schema.GroupVersionResource {
	all := map[string]schema.GroupVersionResource{}
	for gv, names := range map[string][]string{
		"v1":                {"pods", "nodes", "services", "persistentvolumeclaims", "persistentvolumes"},
		"apps/v1":           {"replicasets"},
		"policy/v1":         {"poddisruptionbudgets"},
		"storage.k8s.io/v1": {"storageclasses", "csinodes", "volumeattachments"},
	} {
		parsed, _ := schema.ParseGroupVersion(gv)
		for _, name := range names {
			all[name] = parsed.WithResource(name)
		}
	}
	return all
}

// bench is a server with a scheduler, and the scheduler's cache.
type bench struct {
	name    string
	client  dynamic.Interface
	typed   kubernetes.Interface
	factory informers.SharedInformerFactory
	// supports reports whether the scheduler's cache has this number of nodes; nil if it reads the server's own.
	supports func(nodes int) bool
	seen     string             // the state of the last comparison
	made     map[types.UID]bool // the pods of the story
}

func newBench(t *testing.T, name string, without ...string) *bench {
	t.Helper()
	server := testserver.Start(t, testserver.WithWorkloads("nodes=0"), func(c *bowsprit.Config) {
		c.Controllers.Enabled = []string{"*"}
		for _, name := range without {
			c.Controllers.Enabled = append(c.Controllers.Enabled, "-"+name)
		}
		c.Admission.Disabled = append(c.Admission.Disabled, "TaintNodesByCondition", "ServiceAccount")
	})
	settings := server.RESTConfig()
	settings.QPS, settings.WarningHandler = -1, rest.NoWarnings{}
	b := &bench{
		name: name, made: map[types.UID]bool{},
		client: dynamic.NewForConfigOrDie(settings), typed: kubernetes.NewForConfigOrDie(settings),
	}
	makePriorityClasses(t, b.typed)
	b.factory = kubescheduler.NewInformerFactory(b.typed, 0, nil)
	for _, gvr := range scheduled {
		if _, err := b.factory.ForResource(gvr); err != nil {
			t.Fatal(err)
		}
	}
	if len(without) > 0 {
		b.run(t)
		return b
	}
	b.factory.StartWithContext(t.Context())
	b.factory.WaitForCacheSync(t.Context().Done())
	return b
}

// makePriorityClasses makes the priority classes of the tests.
func makePriorityClasses(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	for _, class := range []schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 10},
		{ObjectMeta: metav1.ObjectMeta{Name: "mid"}, Value: 50},
		{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100},
		{ObjectMeta: metav1.ObjectMeta{Name: "never"}, Value: 100, PreemptionPolicy: new(corev1.PreemptNever)},
		{ObjectMeta: metav1.ObjectMeta{Name: "least"}, Value: -10},
	} {
		_, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), &class, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// run runs kube-scheduler with its defaults, except that it retries unschedulable pods without a backoff.
func (b *bench) run(t *testing.T) {
	t.Helper()
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: b.typed.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	s, err := kubescheduler.New(ctx, b.typed, b.factory, nil, profile.NewRecorderFactory(broadcaster),
		kubescheduler.WithPodInitialBackoffSeconds(0), kubescheduler.WithPodMaxBackoffSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	b.supports = func(nodes int) bool { return s.Cache.NodeCount() == nodes }
	b.factory.StartWithContext(ctx)
	b.factory.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	go s.Run(ctx)
}

func (b *bench) store(resource string) cache.Indexer {
	informer, _ := b.factory.ForResource(scheduled[resource]) // all have been requested
	return informer.Informer().GetIndexer()
}

// get returns an object from the scheduler's cache, or nil.
func (b *bench) get(resource, name string) *unstructured.Unstructured {
	obj, ok, _ := b.store(resource).GetByKey("default/" + name)
	if !ok {
		if obj, ok, _ = b.store(resource).GetByKey(name); !ok {
			return nil
		}
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	return &unstructured.Unstructured{Object: raw}
}

func (b *bench) api(resource string) (dynamic.ResourceInterface, error) {
	gvr, ok := scheduled[resource]
	if !ok {
		return nil, fmt.Errorf("schedulers do not look at %s", resource)
	}
	switch resource {
	case "nodes", "persistentvolumes", "storageclasses", "csinodes", "volumeattachments":
		return b.client.Resource(gvr), nil
	}
	return b.client.Resource(gvr).Namespace("default"), nil
}

// make creates an object, and waits until the scheduler's cache has it.
func (b *bench) make(ctx context.Context, resource string, object map[string]any) error {
	api, err := b.api(resource)
	if err != nil {
		return err
	}
	made, err := api.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if resource == "pods" {
		b.made[made.GetUID()] = true
	}
	if status, ok := object["status"]; ok && resource != "nodes" { // which are made with theirs
		data, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		if _, err := api.Patch(ctx, made.GetName(), types.MergePatchType, data, metav1.PatchOptions{},
			"status"); err != nil {
			return err
		}
	}
	return poll(ctx, func() (bool, error) {
		o := b.get(resource, made.GetName())
		if o == nil || resource == "nodes" && !conditionIs(o, "Ready") {
			return false, nil
		}
		return resource != "nodes" || b.supports == nil || b.supports(len(b.store("nodes").ListKeys())), nil
	})
}

func (b *bench) execute(ctx context.Context, line, more string) error {
	verb, rest, _ := strings.Cut(line, " ")
	about, rest, _ := strings.Cut(rest, " ")
	resource, name, _ := strings.Cut(about, "/")
	switch verb {
	case "node":
		return b.node(ctx, about, rest)
	case "pod":
		return b.pod(ctx, about, rest)
	case "apply":
		for doc := range strings.SplitSeq(more, "\n---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
				return err
			}
			kind := strings.ToLower(fmt.Sprint(object["kind"]))
			if strings.HasSuffix(kind, "s") {
				kind += "e"
			}
			if err := b.make(ctx, kind+"s", object); err != nil {
				return err
			}
		}
		return nil
	case "until":
		at := strings.LastIndex(rest, "=")
		want := rest[at+1:]
		return poll(ctx, func() (bool, error) {
			o := b.get(resource, name)
			if o == nil {
				return false, nil
			}
			got, _, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(rest[1:at], ".")...)
			return err == nil && fmt.Sprint(got) == want, nil
		})
	}
	api, err := b.api(resource)
	if err != nil {
		return err
	}
	switch verb {
	case "patch":
		_, err = api.Patch(ctx, name, types.MergePatchType, []byte(rest), metav1.PatchOptions{})
	case "delete":
		err = api.Delete(ctx, name, metav1.DeleteOptions{})
	default:
		err = fmt.Errorf("%q is no line of a story", line)
	}
	return err
}

func (b *bench) node(ctx context.Context, name, text string) error {
	var answer struct {
		Labels map[string]string   `json:"labels"`
		Has    corev1.ResourceList `json:"has"`
		corev1.NodeSpec
	}
	if err := yaml.UnmarshalStrict([]byte(text), &answer); err != nil {
		return err
	}
	n := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelHostname: name},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		}, Spec: answer.NodeSpec,
	}
	for key, value := range answer.Labels {
		n.Labels[key] = value
	}
	if err := yaml.Unmarshal([]byte("{cpu: 4, memory: 8Gi, pods: 110}"), &n.Status.Allocatable); err != nil {
		return err
	}
	for key, value := range answer.Has {
		n.Status.Allocatable[key] = value
	}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(n)
	if err != nil {
		return err
	}
	return b.make(ctx, "nodes", object)
}

func (b *bench) pod(ctx context.Context, name, text string) error {
	var answer map[string]any
	if err := yaml.Unmarshal([]byte(text), &answer); err != nil {
		return err
	}
	container := map[string]any{"name": "c", "image": "c"}
	meta := map[string]any{"name": name, "labels": map[string]any{"app": name}}
	spec := map[string]any{"containers": []any{container}, "terminationGracePeriodSeconds": 0}
	for key, value := range answer {
		switch key {
		case "cpu":
			container["resources"] = map[string]any{"requests": map[string]any{"cpu": value}}
		case "labels":
			meta["labels"] = value
		case "tags":
			meta["annotations"] = value
		default:
			spec[key] = value
		}
	}
	object := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
	data, err := json.Marshal(object) // numbers as JSON has them
	if err == nil {
		err = yaml.Unmarshal(data, &object)
	}
	if err == nil {
		err = b.make(ctx, "pods", object)
	}
	if err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		o := b.get("pods", name)
		if o == nil {
			return false, errors.New("the pod is gone")
		}
		all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		return conditionIs(o, "Ready") || slices.ContainsFunc(all, func(c any) bool {
			has := c.(map[string]any)
			return has["type"] == string(corev1.PodScheduled) && has["status"] == string(corev1.ConditionFalse)
		}), nil
	})
}

// state returns the nodes of pods, and the schedulers' conditions and events.
func (b *bench) state(ctx context.Context) (string, error) {
	pods, err := b.typed.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var out []string
	for _, p := range pods.Items {
		text := fmt.Sprintf("%s on %q nominated %q %s deleting %v\n", p.Name, p.Spec.NodeName,
			p.Status.NominatedNodeName, p.Status.Phase, p.DeletionTimestamp != nil)
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled || c.Type == corev1.DisruptionTarget {
				text += fmt.Sprintf("  %s %s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
		}
		out = append(out, text)
	}
	all, err := b.typed.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, e := range all.Items {
		if e.ReportingController != corev1.DefaultSchedulerName || !b.made[e.Regarding.UID] {
			continue
		}
		text := fmt.Sprintf("event %s %s %s %s", e.Regarding.Name, e.Type, e.Reason, e.Action)
		if e.Reason != "FailedScheduling" { // the condition has the last of possibly many
			text += " " + settled(e.Note)
		}
		if !slices.Contains(out, text+"\n") {
			out = append(out, text+"\n")
		}
	}
	slices.Sort(out)
	return strings.Join(out, ""), nil
}

// eachBench calls do for all at the same time.
func eachBench(all []*bench, do func(*bench) error) error {
	failed := make(chan error, len(all))
	for _, b := range all {
		go func() {
			err := do(b)
			if err != nil {
				err = fmt.Errorf("%s: %w", b.name, err)
			}
			failed <- err
		}()
	}
	var errs []error
	for range all {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

func runBenches(ctx context.Context, all []*bench, lines []string) error {
	for i := 0; i < len(lines); i++ {
		line, more := lines[i], []string(nil)
		switch {
		case line == "" || line[0] == '#':
			continue
		case line == "same":
			if err := sameBenches(ctx, all); err != nil {
				return err
			}
			continue
		case line == "apply":
			for i++; i < len(lines) && lines[i] != ""; i++ {
				more = append(more, lines[i])
			}
		}
		err := eachBench(all, func(b *bench) error { return b.execute(ctx, line, strings.Join(more, "\n")) })
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", line, err, differ(all))
		}
	}
	return sameBenches(ctx, all)
}

// sameBenches waits until all have the same state, and keep it.
func sameBenches(ctx context.Context, all []*bench) error {
	var since time.Time
	err := poll(ctx, func() (bool, error) {
		changed := false
		for _, b := range all {
			now, err := b.state(ctx)
			if err != nil {
				return false, err
			}
			changed = changed || now != b.seen
			b.seen = now
		}
		if changed || since.IsZero() {
			since = time.Now()
		}
		return all[0].seen == all[1].seen && time.Since(since) >= quiet, nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, differ(all))
	}
	return nil
}

func differ(all []*bench) string {
	for _, b := range all {
		b.seen, _ = b.state(context.Background())
	}
	return "ours +, kube-scheduler's -:\n" + cmp.Diff(strings.Split(all[1].seen, "\n"), strings.Split(all[0].seen, "\n"))
}

// cleanBenches deletes all objects of a story, and waits until the schedulers' caches are empty.
func cleanBenches(ctx context.Context, all []*bench) error {
	return eachBench(all, func(b *bench) error {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		clear(b.made)
		for _, resource := range []string{"poddisruptionbudgets", "pods", "replicasets", "services",
			"persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes", "volumeattachments", "nodes"} {
			api, err := b.api(resource)
			if err != nil {
				return err
			}
			if err := poll(ctx, func() (bool, error) {
				if resource == "services" || resource == "storageclasses" {
					for _, key := range b.store(resource).ListKeys() {
						if _, name, _ := cache.SplitMetaNamespaceKey(key); name != "kubernetes" && name != "standard" {
							if err := api.Delete(ctx, name, now); err != nil && !apierrors.IsNotFound(err) {
								return false, err
							}
						}
					}
					return len(b.store(resource).ListKeys()) <= 1, nil
				}
				if err := api.DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
					return false, err
				}
				return len(b.store(resource).ListKeys()) == 0, nil
			}); err != nil {
				return err
			}
		}
		return b.typed.CoreV1().Events("default").DeleteCollection(ctx, now, metav1.ListOptions{})
	})
}

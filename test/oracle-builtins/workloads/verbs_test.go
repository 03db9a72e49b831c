package workloads

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// verbs are the first words of a story's lines; KIND is the plural name of a resource. There are also
//
//	# text
//	apply          and the objects, in YAML, up to an empty line
//	same           waits until both servers have the same objects and keep them; each story ends with it
var verbs = map[string]func(on target, ctx context.Context, rest string) error{
	// make KIND/NAME {KEYS}: creates an object from bases and the keys (make_test.go).
	"make": target.create,
	// set KIND/NAME {KEYS}: changes it; null takes away.
	"set": func(on target, ctx context.Context, rest string) error {
		patch, err := change(on.resource, rest)
		if err != nil {
			return err
		}
		return on.patch(ctx, patch)
	},
	// patch KIND/NAME JSON: a merge patch; status KIND/NAME YAML one of the status.
	"patch":  func(on target, ctx context.Context, rest string) error { return on.patchText(ctx, rest) },
	"status": target.patchStatus,
	// delete KIND/NAME: and then its dependents; orphan keeps them, foreground deletes them first.
	"delete":     deletion(metav1.DeletePropagationBackground),
	"orphan":     deletion(metav1.DeletePropagationOrphan),
	"foreground": deletion(metav1.DeletePropagationForeground),
	// deleteall KIND/-: deletes all of a kind.
	"deleteall": func(on target, ctx context.Context, _ string) error {
		return on.api().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	},
	// lose pods/APP: deletes the first pod with the label app=APP.
	"lose": target.lose,
	// fail pods/APP: marks the first as failed, as a kubelet does that evicts it.
	"fail": target.fail,
	// succeed pods/APP: marks it as succeeded; relabel pods/APP LABEL=VALUE changes a label of the first.
	"succeed": func(on target, ctx context.Context, _ string) error {
		p, err := on.first()
		if err != nil {
			return err
		}
		on.name = p.GetName()
		return on.patchStatus(ctx, "{phase: Succeeded}")
	},
	"relabel": func(on target, ctx context.Context, rest string) error {
		return on.patchFirst(ctx, "metadata", "labels", rest)
	},
	// annotate pods/APP KEY=VALUE: the first; relabelset replicasets/APP LABEL=VALUE and scaleset replicasets/APP N;
	// retemplate replicasets/APP LABEL deletes it and makes it again, with another template.
	"annotate": func(on target, ctx context.Context, rest string) error {
		return on.patchFirst(ctx, "metadata", "annotations", rest)
	},
	"relabelset": func(on target, ctx context.Context, rest string) error {
		return on.patchFirst(ctx, "metadata", "labels", rest)
	},
	"scaleset": func(on target, ctx context.Context, rest string) error {
		n, err := strconv.Atoi(rest)
		if err != nil {
			return err
		}
		o, err := on.first()
		if err != nil {
			return err
		}
		on.name = o.GetName()
		return on.patch(ctx, map[string]any{"spec": map[string]any{"replicas": n}})
	},
	"retemplate": target.retemplate,
	// patchfirst KIND/APP JSON: a merge patch of the first.
	"patchfirst": func(on target, ctx context.Context, rest string) error {
		o, err := on.first()
		if err != nil {
			return err
		}
		on.name = o.GetName()
		return on.patchText(ctx, rest)
	},
	// evict pods/NAME, "-" being any, and 429 if it should be refused.
	"evict": target.evict,
	// gone KIND/NAME: waits until it is deleted.
	"gone": func(on target, ctx context.Context, _ string) error {
		return poll(ctx, func() (bool, error) { return on.get() == nil, nil })
	},
	// until KIND/NAME PATH=VALUE: waits, by a JSONPath without braces.
	"until": target.until,
	// seen KIND/NAME: waits until its controller has observed it; ready until all pods of its spec are ready; ended
	// until a Job has ended.
	"seen":  func(on target, ctx context.Context, _ string) error { return on.wait(ctx, isSeen) },
	"ready": func(on target, ctx context.Context, _ string) error { return on.wait(ctx, isReady) },
	"ended": func(on target, ctx context.Context, _ string) error { return on.wait(ctx, hasEnded) },
	// event KIND/NAME REASON: waits for one, "-" being any object of the kind.
	"event": target.event,
	// count KIND/APP N: waits until N objects of a kind have the label app=APP ("-" is any) and are not being deleted.
	"count": target.count,
	// tick -: waits for the next full second, so that later objects are younger than all earlier ones.
	"tick": func(_ target, ctx context.Context, _ string) error {
		now := time.Now()
		select {
		case <-time.After(now.Truncate(time.Second).Add(time.Second).Sub(now)):
		case <-ctx.Done():
		}
		return nil
	},
	// pause SECONDS: lets time pass where no visible change could be awaited.
	"pause": func(on target, ctx context.Context, rest string) error {
		n, err := strconv.ParseFloat(strings.TrimPrefix(on.about+rest, "-"), 64)
		select {
		case <-time.After(time.Duration(n * float64(time.Second))):
		case <-ctx.Done():
		}
		return err
	},
}

// target is the object of a line, on one of the servers.
type target struct {
	*side
	about, resource, namespace, name string
}

func (s *story) target(on *side, about string) target {
	resource, name, _ := strings.Cut(about, "/")
	return target{on, about, resource, s.namespace, name}
}

func (on target) api() dynamic.ResourceInterface {
	if ofCluster(on.resource) {
		return on.client.Resource(kinds[on.resource])
	}
	return on.client.Resource(kinds[on.resource]).Namespace(on.namespace)
}

func (on target) get() *unstructured.Unstructured {
	return on.side.get(on.resource, on.namespace, on.name)
}

// written waits until the copy has the result of a write.
func (on target) written(ctx context.Context, o *unstructured.Unstructured, err error) error {
	if err != nil {
		return err
	}
	return on.reach(ctx, on.resource, o)
}

func (s *story) apply(ctx context.Context, on *side, text string) error {
	text = strings.ReplaceAll(text, "$NAMESPACE", s.namespace)
	for doc := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			return err
		}
		resource := strings.ToLower(o.GetKind()) + "s"
		if _, ok := kinds[resource]; !ok {
			return fmt.Errorf("kind %s is not known", o.GetKind())
		}
		of := s.target(on, resource+"/"+o.GetName())
		applied, err := of.api().Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "story"})
		if err := of.written(ctx, applied, err); err != nil {
			return err
		}
	}
	return nil
}

func (on target) create(ctx context.Context, rest string) error {
	o, err := base(on.resource, on.name)
	if err != nil {
		return err
	}
	answer, err := change(on.resource, rest)
	if err != nil {
		return err
	}
	merge(o.Object, answer)
	without(o.Object)
	made, err := on.api().Create(ctx, o, metav1.CreateOptions{})
	return on.written(ctx, made, err)
}

func (on target) patch(ctx context.Context, patch map[string]any, subresources ...string) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return on.patchText(ctx, string(data), subresources...)
}

func (on target) patchText(ctx context.Context, text string, subresources ...string) error {
	now, err := on.api().Patch(ctx, on.name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...)
	return on.written(ctx, now, err)
}

func (on target) patchStatus(ctx context.Context, rest string) error {
	var patch map[string]any
	if err := yaml.Unmarshal([]byte(rest), &patch); err != nil {
		return err
	}
	return on.patch(ctx, map[string]any{"status": patch}, "status")
}

func deletion(how metav1.DeletionPropagation) func(on target, ctx context.Context, rest string) error {
	return func(on target, ctx context.Context, _ string) error {
		return on.api().Delete(ctx, on.name, metav1.DeleteOptions{PropagationPolicy: &how})
	}
}

func (on target) until(ctx context.Context, condition string) error {
	at := strings.LastIndex(condition, "=")
	path, want := jsonpath.New("until").AllowMissingKeys(true), condition[at+1:]
	if err := path.Parse("{" + condition[:at] + "}"); err != nil {
		return err
	}
	var got bytes.Buffer
	err := on.wait(ctx, func(o *unstructured.Unstructured) bool {
		got.Reset()
		return path.Execute(&got, o.Object) == nil && got.String() == want
	})
	if err != nil {
		return fmt.Errorf("it is %q: %w", got.String(), err)
	}
	return nil
}

// wait waits until is returns true for the object.
func (on target) wait(ctx context.Context, is func(*unstructured.Unstructured) bool) error {
	return poll(ctx, func() (bool, error) {
		o := on.get()
		return o != nil && is(o), nil
	})
}

func (on target) event(ctx context.Context, reason string) error {
	return poll(ctx, func() (bool, error) {
		for _, e := range on.list("events", on.namespace) {
			about, _, _ := unstructured.NestedStringMap(e.Object, "involvedObject")
			if got, _, _ := unstructured.NestedString(e.Object, "reason"); got != reason {
				continue
			}
			if about["name"] == on.name || on.name == "-" && strings.ToLower(about["kind"])+"s" == on.resource {
				return true, nil
			}
		}
		return false, nil
	})
}

func (on target) count(ctx context.Context, rest string) error {
	want, err := strconv.Atoi(rest)
	if err != nil {
		return err
	}
	got := 0
	err = poll(ctx, func() (bool, error) {
		got = 0
		for _, o := range on.list(on.resource, on.namespace) {
			if (on.name == "-" || o.GetLabels()["app"] == on.name) && o.GetDeletionTimestamp() == nil {
				got++
			}
		}
		return got == want, nil
	})
	if err != nil {
		return fmt.Errorf("there are %d: %w", got, err)
	}
	return nil
}

func number(o *unstructured.Unstructured, path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, path...)
	return n
}

func isSeen(o *unstructured.Unstructured) bool {
	return number(o, "status", "observedGeneration") >= o.GetGeneration()
}

// isReady reports whether all pods of a controller exist, with its template as far as that shows, and are available.
func isReady(o *unstructured.Unstructured) bool {
	if o.GetKind() == "Pod" {
		return conditionIs(o, "Ready")
	}
	want := number(o, "spec", "replicas")
	all := []string{"replicas", "availableReplicas", "readyReplicas"}
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type")
	switch o.GetKind() {
	case "Deployment":
		all = append(all, "updatedReplicas")
	case "StatefulSet":
		current, _, _ := unstructured.NestedString(o.Object, "status", "currentRevision")
		update, _, _ := unstructured.NestedString(o.Object, "status", "updateRevision")
		partition := number(o, "spec", "updateStrategy", "rollingUpdate", "partition")
		if strategy == "RollingUpdate" && (partition == 0 && current != update ||
			number(o, "status", "updatedReplicas") < want-partition) {
			return false
		}
	case "DaemonSet":
		want = number(o, "status", "desiredNumberScheduled")
		if all = []string{"currentNumberScheduled", "numberAvailable"}; strategy == "RollingUpdate" {
			all = append(all, "updatedNumberScheduled")
		}
	}
	for _, field := range all {
		if number(o, "status", field) != want {
			return false
		}
	}
	return isSeen(o)
}

func hasEnded(o *unstructured.Unstructured) bool {
	return conditionIs(o, "Complete") || conditionIs(o, "Failed")
}

func conditionIs(o *unstructured.Unstructured, kind string) bool {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range list {
		if c, _ := v.(map[string]any); c["type"] == kind {
			return c["status"] == "True"
		}
	}
	return false
}

package podgc

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/core/podcondition"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// podRound is the input of one round of the pod collector.
type podRound struct {
	now   time.Time
	pods  []*watchcache.Entry
	nodes map[string]nodeState
	// absent is podCollector's; strays keeps it true.
	absent map[string]time.Time
	// terminated is how many pods that have ended may stay.
	terminated int
}

// nodeState is the part of a node's state that decides about its pods.
type nodeState struct {
	// outOfService is true if the node is not ready and an administrator has tainted it as out of service.
	outOfService bool
}

// stray is a pod to be removed. because is the message of its condition, "" for none.
type stray struct {
	pod     *watchcache.Entry
	because string
}

// nodeGone is kube's message.
const nodeGone = "PodGC: node no longer exists"

// settling is how long a deleted pod without a node is left to the request that deleted it.
const settling = 5 * time.Second

// strays returns the pods to be removed, in kube's order.
func (r *podRound) strays() []stray {
	var out []stray
	for _, e := range r.surplus() {
		out = append(out, stray{e, ""})
	}
	for _, e := range r.pods {
		if e.Deleting && r.nodes[nodeOf(e)].outOfService {
			out = append(out, stray{e, ""})
		}
	}
	gone := r.gone()
	for _, e := range r.pods {
		if gone[nodeOf(e)] || e.Deleting && r.missing(nodeOf(e)) {
			out = append(out, stray{e, nodeGone})
		}
	}
	for _, e := range r.pods {
		if e.Deleting && nodeOf(e) == "" && r.settled(e) {
			out = append(out, stray{e, ""})
		}
	}
	return out
}

// surplus returns the ended pods beyond the limit: evicted ones first, then the oldest.
func (r *podRound) surplus() []*watchcache.Entry {
	var all []*watchcache.Entry
	for _, e := range r.pods {
		if hasEnded(e) {
			all = append(all, e)
		}
	}
	if r.terminated <= 0 || len(all) <= r.terminated {
		return nil
	}
	evicted := func(e *watchcache.Entry) int {
		if field(e, "status.phase") == string(corev1.PodFailed) && field(e, "status.reason") == "Evicted" {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b *watchcache.Entry) int {
		created, than := field(a, "metadata.creationTimestamp"), field(b, "metadata.creationTimestamp")
		return cmp.Or(evicted(a)-evicted(b), cmp.Compare(created, than), cmp.Compare(a.Name, b.Name))
	})
	return all[:len(all)-r.terminated]
}

// gone tracks missing nodes, and returns the ones that have been missing for long enough.
func (r *podRound) gone() map[string]bool {
	named, gone := map[string]bool{}, map[string]bool{}
	for _, e := range r.pods {
		node := nodeOf(e)
		if !r.missing(node) {
			continue
		}
		named[node] = true
		if since, known := r.absent[node]; !known {
			r.absent[node] = r.now
		} else if r.now.Sub(since) >= nodeQuarantine {
			gone[node] = true
		}
	}
	for node := range r.absent {
		if !named[node] || gone[node] {
			delete(r.absent, node)
		}
	}
	return gone
}

func (r *podRound) missing(node string) bool {
	_, exists := r.nodes[node]
	return node != "" && !exists
}

// settled reports whether the deletion of a pod is no longer under way.
func (r *podRound) settled(e *watchcache.Entry) bool {
	at, err := time.Parse(time.RFC3339, field(e, "metadata.deletionTimestamp"))
	return err != nil || r.now.Sub(at) >= settling
}

func nodeOf(e *watchcache.Entry) string { return field(e, "spec.nodeName") }

func field(e *watchcache.Entry, path string) string {
	value, _ := e.Field(path)
	return value
}

// hasEnded reports whether a pod has run to its end.
func hasEnded(e *watchcache.Entry) bool {
	switch corev1.PodPhase(field(e, "status.phase")) {
	case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
		return false
	}
	return true
}

// stateOfNode reads a node.
func stateOfNode(e *watchcache.Entry) nodeState {
	if taints := field(e, "spec.taints"); taints == "" || taints == "[]" {
		return nodeState{}
	}
	var node corev1.Node
	if json.Unmarshal(e.JSON(), &node) != nil {
		return nodeState{}
	}
	lost := slices.ContainsFunc(node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return nodeState{outOfService: lost && !ready}
}

// fail sets the phase of a pod to Failed, with a condition about the deletion.
func fail(pod object.Object, because string, now time.Time) {
	meta, _ := pod["metadata"].(object.Object)
	status, ok := pod["status"].(object.Object)
	if !ok {
		status = object.Object{}
		pod["status"] = status
	}
	status["phase"] = string(corev1.PodFailed)
	status["observedGeneration"] = meta["generation"]
	if because == "" {
		return
	}
	podcondition.Set(pod, object.Object{
		"type": string(corev1.DisruptionTarget), "status": string(corev1.ConditionTrue),
		"observedGeneration": meta["generation"],
		"reason":             "DeletionByPodGC", "message": because,
	}, now)
}

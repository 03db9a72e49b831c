package protection

import (
	"encoding/json"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// users are the pods that refer to claims and have not terminated. A namespace may have as many claims as pods, so no
// claim can afford a scan of all pods.
type users struct {
	mu sync.Mutex
	of map[string][]user // by the key of the claim
}

// user is a pod that refers to a claim.
type user struct {
	uid string
	own bool // the claim is created for this pod
}

// follow records the change of a pod, and requests the claims with another set of users.
func (u *users) follow(ev *watchcache.Event, need func(string)) {
	pod := ev.Entry
	if old := ev.Prev; old != nil && old.UID == pod.UID && ev.Type != watchcache.Deleted &&
		terminated(old) == terminated(pod) {
		return // the volumes of a pod do not change
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if ev.Prev != nil && ev.Prev.UID != pod.UID { // deleted and recreated, seen as one change
		u.setLocked(ev.Prev, false, need)
	}
	u.setLocked(pod, ev.Type != watchcache.Deleted && !terminated(pod), need)
}

// setLocked adds a pod to the users of its claims, or removes it.
func (u *users) setLocked(pod *watchcache.Entry, uses bool, need func(string)) {
	for _, v := range volumesOf(pod) {
		key := pod.Namespace + "/" + v.claim
		rest := slices.DeleteFunc(u.of[key], func(other user) bool { return other.uid == pod.UID })
		if uses {
			rest = append(rest, user{pod.UID, v.own})
		}
		if len(rest) > 0 {
			if u.of == nil {
				u.of = map[string][]user{}
			}
			u.of[key] = rest
		} else {
			delete(u.of, key)
		}
		need(key)
	}
}

// use reports whether a pod refers to the claim.
func (u *users) use(claim *watchcache.Entry) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(u.of[claim.Key()], func(by user) bool { return !by.own || controlledBy(claim, by.uid) })
}

// terminated reports whether a pod has ended, or is being deleted and has no running container.
func terminated(pod *watchcache.Entry) bool {
	if ended(pod) || !pod.Deleting {
		return ended(pod)
	}
	var in struct{ Status corev1.PodStatus }
	if json.Unmarshal(pod.JSON(), &in) != nil {
		return false
	}
	s := &in.Status
	return !slices.ContainsFunc(
		slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses),
		func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil && c.State.Waiting == nil })
}

package apps

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// ordinal splits a pod's name into the name of its set and its ordinal; -1 means none.
func ordinal(p *corev1.Pod) (parent string, n int) {
	at := strings.LastIndexByte(p.Name, '-')
	if at < 1 {
		return "", -1
	}
	number, err := strconv.ParseUint(p.Name[at+1:], 10, 31)
	if err != nil {
		return "", -1
	}
	return p.Name[:at], int(number)
}

// first returns the number of the first pod of a set.
func first(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

// inRange reports whether a number is that of a pod that the set is to have.
func inRange(set *appsv1.StatefulSet, n int) bool {
	return n >= first(set) && n < first(set)+int(*set.Spec.Replicas)
}

// made reports whether a pod exists, and is not just a sketch of one to create.
func made(p *corev1.Pod) bool { return p.Status.Phase != "" }

func unavailable(p *corev1.Pod, r *ordered) bool {
	return p.DeletionTimestamp != nil || !replica.IsAvailable(p, r.set.Spec.MinReadySeconds, r.now)
}

// reconcile creates, repairs and deletes pods: one after another unless the set is parallel.
func (r *ordered) reconcile(ctx context.Context, pods []*corev1.Pod) error {
	r.count(pods)
	if r.set.DeletionTimestamp != nil {
		return nil
	}
	wanted, surplus := r.sortOut(pods)
	if r.set.Spec.UpdateStrategy.Type == appsv1.RecreateStatefulSetStrategyType {
		if wait, err := r.recreate(ctx, slices.Concat(wanted, surplus)); err != nil || wait {
			return err
		}
	}
	err := r.each(wanted, func(p *corev1.Pod) (bool, error) { return r.keep(ctx, p) })
	if err == nil {
		err = r.each(surplus, func(p *corev1.Pod) (bool, error) {
			_, err := r.fixClaims(ctx, p)
			return false, err
		})
	}
	if err == nil {
		unwell := r.firstUnavailable(wanted, surplus)
		err = r.each(surplus, func(p *corev1.Pod) (bool, error) { return r.condemn(ctx, p, unwell) })
	}
	r.count(slices.Concat(wanted, surplus))
	if err == nil {
		err = r.rollOut(ctx, wanted)
	}
	if err == errWait {
		return nil
	}
	return err
}

// errWait ends a look at a set that has to wait for a pod.
var errWait = fmt.Errorf("wait")

// each calls do for the pods. In an ordered set it stops at the first pod that must be waited for or fails. In a
// parallel set it calls do concurrently and waits for no pod.
func (r *ordered) each(pods []*corev1.Pod, do func(*corev1.Pod) (wait bool, err error)) error {
	if r.parallel() {
		_, err := cluster.SlowStart(len(pods), func(i int) error {
			_, err := do(pods[i])
			return err
		})
		return err
	}
	for _, p := range pods {
		if wait, err := do(p); err != nil || wait {
			return cmp.Or(err, errWait)
		}
	}
	return nil
}

// sortOut returns the pods that the set should have, by ordinal, with a sketch of each pod to create next; and the
// other pods, the last first. It sketches the lowest missing ordinals, at most BurstMost, so that the cost of a
// reconcile does not depend on the number of replicas.
func (r *ordered) sortOut(pods []*corev1.Pod) (wanted, surplus []*corev1.Pod) {
	for _, p := range pods {
		if _, n := ordinal(p); inRange(r.set, n) {
			wanted = append(wanted, p)
		} else if n >= 0 {
			surplus = append(surplus, p)
		}
	}
	slices.SortFunc(wanted, byOrdinal)
	next, missing := first(r.set), []*corev1.Pod(nil)
	sketchUpTo := func(n int) {
		for ; next < n && len(missing) < cluster.BurstMost; next++ {
			missing = append(missing, r.sketch(next))
		}
	}
	for _, p := range wanted {
		_, n := ordinal(p)
		sketchUpTo(n)
		next = n + 1
	}
	sketchUpTo(min(first(r.set)+int(*r.set.Spec.Replicas), math.MaxInt32+1)) // larger ordinals do not occur
	wanted = append(wanted, missing...)
	slices.SortFunc(wanted, byOrdinal)
	slices.SortFunc(surplus, func(a, b *corev1.Pod) int { return byOrdinal(b, a) })
	return wanted, surplus
}

func byOrdinal(a, b *corev1.Pod) int {
	_, m := ordinal(a)
	_, n := ordinal(b)
	return cmp.Compare(m, n)
}

// firstUnavailable returns the unavailable pod with the lowest ordinal, or nil if all are available.
func (r *ordered) firstUnavailable(wanted, surplus []*corev1.Pod) *corev1.Pod {
	all := slices.Clone(surplus)
	slices.Reverse(all)
	for _, p := range slices.Concat(wanted, all) {
		if unavailable(p, r) {
			return p
		}
	}
	return nil
}

// count counts pods for the status.
func (r *ordered) count(pods []*corev1.Pod) {
	s := &r.status
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas = 0, 0, 0, 0, 0
	for _, p := range pods {
		if !made(p) {
			continue
		}
		s.Replicas++
		if p.Status.Phase == corev1.PodRunning && replica.IsReady(p) {
			s.ReadyReplicas++
			if replica.IsAvailable(p, r.set.Spec.MinReadySeconds, r.now) {
				s.AvailableReplicas++
			}
		}
		if p.DeletionTimestamp != nil {
			continue
		}
		revision := p.Labels[appsv1.StatefulSetRevisionLabel]
		if revision == r.current.Name {
			s.CurrentReplicas++
		}
		if revision == r.update.Name {
			s.UpdatedReplicas++
		}
	}
}

func (r *ordered) parallel() bool {
	return r.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
}

// keep creates a missing pod, replaces an ended one, and repairs identity and claims of a running one, in an ordered
// set once it is available. It reports whether the next pod has to wait for it.
func (r *ordered) keep(ctx context.Context, p *corev1.Pod) (wait bool, err error) {
	if replica.HasEnded(p) {
		if p.DeletionTimestamp == nil {
			err = r.delete(ctx, p)
		}
		return true, err
	}
	if !made(p) {
		if r.waitsForClaims(p) {
			return true, nil
		}
		_, n := ordinal(p)
		return true, r.create(ctx, r.newPod(n))
	}
	if p.Status.Phase == corev1.PodPending {
		if err := r.makeClaims(ctx, p); err != nil {
			return true, err
		}
		if _, err := r.fixClaims(ctx, p); err != nil {
			return true, err
		}
	}
	wait = p.Status.Phase != corev1.PodRunning || unavailable(p, r)
	if wait && !r.parallel() {
		return true, nil
	}
	return wait, r.repair(ctx, p)
}

// condemn deletes a surplus pod. While an earlier pod is unhealthy, only that one is deleted.
func (r *ordered) condemn(ctx context.Context, p, unwell *corev1.Pod) (wait bool, err error) {
	if p.DeletionTimestamp != nil {
		return true, nil
	}
	if !r.parallel() && p != unwell && unavailable(p, r) {
		return true, nil
	}
	return true, r.delete(ctx, p)
}

// sketch returns the name and the revision of a missing pod.
func (r *ordered) sketch(n int) *corev1.Pod {
	_, revision := r.templateOf(n)
	p := &corev1.Pod{}
	p.Namespace, p.Name = r.set.Namespace, r.set.Name+"-"+strconv.Itoa(n)
	p.Labels = map[string]string{appsv1.StatefulSetRevisionLabel: revision}
	return p
}

// templateOf returns the template and the revision for the pod of an ordinal: the current revision's until a rolling
// update reaches the pod.
func (r *ordered) templateOf(n int) (template *corev1.PodTemplateSpec, revision string) {
	u := r.set.Spec.UpdateStrategy
	former := u.Type == appsv1.RollingUpdateStatefulSetStrategyType && u.RollingUpdate == nil &&
		n < first(r.set)+int(r.set.Status.CurrentReplicas)
	if u.RollingUpdate != nil && u.RollingUpdate.Partition != nil {
		former = former || n < first(r.set)+int(*u.RollingUpdate.Partition)
	}
	if former {
		return &r.former, r.current.Name
	}
	return &r.latest, r.update.Name
}

// newPod returns the pod of a number.
func (r *ordered) newPod(n int) *corev1.Pod {
	template, revision := r.templateOf(n)
	p := replica.FromTemplate(template, r.set, r.ref)
	p.Name = r.set.Name + "-" + strconv.Itoa(n)
	p.Spec.Hostname, p.Spec.Subdomain = p.Name, r.set.Spec.ServiceName
	p.Labels = with(p.Labels, appsv1.StatefulSetRevisionLabel, revision)
	r.identify(p)
	return p
}

// identify sets the labels and volumes of a pod by its ordinal, and reports whether it changed any.
func (r *ordered) identify(p *corev1.Pod) (changed bool) {
	_, n := ordinal(p)
	if p.Labels[appsv1.StatefulSetPodNameLabel] != p.Name {
		p.Labels = with(p.Labels, appsv1.StatefulSetPodNameLabel, p.Name)
		p.Labels[appsv1.PodIndexLabel] = strconv.Itoa(n)
		changed = true
	}
	had := make(map[string]*corev1.PersistentVolumeClaimVolumeSource, len(p.Spec.Volumes))
	for i := range p.Spec.Volumes {
		had[p.Spec.Volumes[i].Name] = p.Spec.Volumes[i].PersistentVolumeClaim
	}
	var volumes []corev1.Volume
	own := map[string]bool{}
	for i := range r.set.Spec.VolumeClaimTemplates {
		template := &r.set.Spec.VolumeClaimTemplates[i]
		name := claimName(r.set, template.Name, n)
		own[template.Name] = true
		changed = changed || had[template.Name] == nil || had[template.Name].ClaimName != name
		volumes = append(volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	for _, v := range p.Spec.Volumes {
		if !own[v.Name] {
			volumes = append(volumes, v)
		}
	}
	if changed {
		p.Spec.Volumes = volumes
	}
	return changed
}

// create creates a pod after its claims.
func (r *ordered) create(ctx context.Context, p *corev1.Pod) error {
	if err := r.makeClaims(ctx, p); err != nil {
		r.report(ctx, "Create", p, err)
		return err
	}
	_, err := cluster.Pods.Create(ctx, r.Cluster, p)
	if apierrors.IsAlreadyExists(err) {
		return err
	}
	if _, failed := r.fixClaims(ctx, p); failed != nil {
		return failed
	}
	r.report(ctx, "Create", p, err)
	return err
}

func (r *ordered) delete(ctx context.Context, p *corev1.Pod) error {
	err := cluster.Pods.Delete(ctx, r.Cluster, p, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	r.report(ctx, "Delete", p, err)
	return err
}

// repair restores lost labels of a pod, and the owners of its claims.
func (r *ordered) repair(ctx context.Context, p *corev1.Pod) error {
	fixed, err := r.fixClaims(ctx, p)
	if err != nil {
		return err
	}
	if !r.identify(p.DeepCopy()) {
		if fixed { // Kubernetes also writes the pod, with an event
			r.report(ctx, "Update", p, nil)
		}
		return nil
	}
	_, err = cluster.Pods.Update(ctx, r.Cluster, p, func(now *corev1.Pod) error {
		r.identify(now)
		return nil
	})
	r.report(ctx, "Update", p, err)
	return err
}

func (r *ordered) report(ctx context.Context, verb string, p *corev1.Pod, err error) {
	about := cluster.StatefulSets.Ref(r.set)
	if err != nil {
		r.Warning(ctx, about, "Failed"+verb, "%s Pod %s in StatefulSet %s failed error: %s", verb, p.Name, r.set.Name,
			err)
		return
	}
	r.Normal(ctx, about, "Successful"+verb, "%s Pod %s in StatefulSet %s successful", verb, p.Name, r.set.Name)
}

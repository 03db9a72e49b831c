package kubelet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/workload/pod"
)

// cases is how many random pods there are; ORACLE_PODS makes it more.
func cases() int {
	n, err := strconv.Atoi(os.Getenv("ORACLE_PODS"))
	if err != nil {
		return 100
	}
	return n
}

// TestPods checks that simulated pods have the status that a kubelet gives them, at each time at which something
// happens: containers end, pauses end, objects appear, an image changes, the pod is deleted. The pods are random.
func TestPods(t *testing.T) {
	utilruntime.ErrorHandlers = nil // one of them sleeps until it is a millisecond after the last error of any bubble
	first, _ := strconv.Atoi(os.Getenv("ORACLE_FIRST"))
	seen := map[string]int{}
	for n := first; n < first+cases(); n++ {
		synctest.Test(t, func(t *testing.T) {
			c := newCase(t, rand.New(rand.NewPCG(36, uint64(n))))
			c.play(t, n, seen)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("pods by state: %v", seen)
	for _, reason := range []string{"Succeeded", "Failed", "CrashLoopBackOff", "CreateContainerConfigError",
		"RestartingAllContainers", "deleted", "uninitialized"} {
		if seen[reason] == 0 {
			t.Errorf("no pod showed %s", reason)
		}
	}
}

// podCase is a random pod with its two kubelets.
type podCase struct {
	r        *rand.Rand
	objects  *objects
	appear   time.Time
	deletion time.Time
	image    time.Time
	spec     corev1.PodSpec
	theirs   *kubelet
	ours     *corev1.Pod
	course   *pod.Course
	start    time.Time
}

func (c *podCase) chance(n int) bool { return c.r.IntN(n) == 0 }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newCase(t *testing.T, r *rand.Rand) *podCase {
	c := &podCase{r: r, objects: &objects{
		configMaps: map[string]*corev1.ConfigMap{"there": {Data: map[string]string{"k": "v"}}},
		secrets:    map[string]*corev1.Secret{"there": {Data: map[string][]byte{"k": nil}}},
	}, start: time.Now()}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", Namespace: "default", UID: types.UID(fmt.Sprint(r.Uint64())), Generation: 1,
		Annotations: map[string]string{},
	}}
	all := runs{}
	p.Spec.RestartPolicy = pick(r, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	p.Spec.EnableServiceLinks = ptr.To(false)
	p.Spec.SecurityContext = &corev1.PodSecurityContext{}
	for i := range r.IntN(4) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, c.container(p, all, fmt.Sprintf("i%d", i), true))
	}
	for i := range 1 + r.IntN(3) {
		p.Spec.Containers = append(p.Spec.Containers, c.container(p, all, fmt.Sprintf("%c%d", 'c'-i, i), false))
	}
	if podutil.AllContainersCouldRestart(&p.Spec) { // a simulated kubelet restarts all containers once a second at most
		for name, how := range all {
			if how.after < 0 {
				all[name] = run{after: time.Second}
				p.Annotations["simulate-run-time.bowsprit.dev/"+name] = "1s"
			}
		}
	}
	if c.chance(6) {
		p.Spec.ActiveDeadlineSeconds = ptr.To(int64(1 + r.IntN(1000)))
	}
	if c.chance(8) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	}
	if c.chance(8) {
		p.Annotations["bowsprit.dev/simulate-unready"] = pick(r, "true", "c0", "i0")
	}
	if c.chance(6) {
		c.volume(p)
	}
	if c.chance(4) {
		c.deletion = c.start.Add(time.Duration(r.IntN(1500)) * time.Second)
	}
	if c.chance(5) {
		c.image = c.start.Add(time.Duration(r.IntN(500)) * time.Second)
	}
	c.appear = c.start.Add(time.Duration(r.IntN(300)) * time.Second)
	p.Status = corev1.PodStatus{
		Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable,
		Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: 1,
			LastTransitionTime: metav1.Time{Time: c.start},
		}},
	}
	c.ours = p
	c.course = &pod.Course{ConfigMaps: c.objects.configMaps, Secrets: c.objects.secrets}
	c.theirs = newKubelet(t, p.DeepCopy(), all, c.objects)
	return c
}

// container returns a random container and notes how its runs end.
func (c *podCase) container(p *corev1.Pod, all runs, name string, init bool) corev1.Container {
	r := c.r
	out := corev1.Container{
		Name: name, Image: "i:1", ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath:   "/dev/termination-log",
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	if c.chance(3) {
		out.Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	}
	always := corev1.ContainerRestartPolicyAlways
	if init && c.chance(2) {
		out.RestartPolicy = &always
	} else if c.chance(3) {
		policy := pick(r, always, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)
		if init && policy == always {
			policy = corev1.ContainerRestartPolicyNever
		}
		out.RestartPolicy = &policy
		for range r.IntN(3) {
			out.RestartPolicyRules = append(out.RestartPolicyRules, corev1.ContainerRestartRule{
				Action: pick(r, corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestart,
					corev1.ContainerRestartRuleActionRestartAllContainers),
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
					Operator: pick(r, corev1.ContainerRestartRuleOnExitCodesOpIn,
						corev1.ContainerRestartRuleOnExitCodesOpNotIn),
					Values: []int32{pick[int32](r, 0, 1, 7), 7},
				},
			})
		}
	}
	if init && out.RestartPolicy == nil && c.chance(2) {
		all[name] = run{after: -1} // the default of a simulated init container
	} else if !c.chance(4) {
		how := run{after: time.Duration(1+r.IntN(pick(r, 5, 30, 700))) * time.Second, code: pick[int32](r, 0, 0, 1, 7)}
		all[name] = how
		p.Annotations["simulate-run-time.bowsprit.dev/"+name] = how.after.String()
		p.Annotations["simulate-exit-code.bowsprit.dev/"+name] = fmt.Sprint(how.code)
	} else if init && out.RestartPolicy != &always {
		all[name] = run{after: -1}
	}
	if c.chance(3) && (!init || out.RestartPolicy == &always) {
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}}}
		out.StartupProbe, out.ReadinessProbe = pick(r, nil, probe), pick(r, nil, probe)
		out.LivenessProbe = pick(r, nil, probe)
	}
	if c.chance(8) {
		c.environment(&out)
	}
	return out
}

// environment gives a container variables from objects that may not exist, or lack the key.
func (c *podCase) environment(to *corev1.Container) {
	name := corev1.LocalObjectReference{Name: pick(c.r, "there", "later")}
	key, optional := pick(c.r, "k", "k", "x"), ptr.To(c.chance(3))
	switch c.r.IntN(4) {
	case 0:
		to.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: name, Optional: optional}}}
	case 1:
		to.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: name, Optional: optional}}}
	case 2:
		to.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: name, Key: key, Optional: optional}}}}
	default:
		to.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: name, Key: key, Optional: optional}}}}
	}
}

// volume gives the pod a volume of an object that may not exist, or lack the key.
func (c *podCase) volume(p *corev1.Pod) {
	name, optional := pick(c.r, "there", "later", "later"), ptr.To(c.chance(3))
	items := pick(c.r, nil, []corev1.KeyToPath{{Key: pick(c.r, "k", "k", "x"), Path: "f"}})
	v := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: name, Items: items, DefaultMode: ptr.To[int32](0o644), Optional: optional}}}
	if c.chance(2) {
		v.VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items,
			DefaultMode: ptr.To[int32](0o644), Optional: optional}}
	}
	p.Spec.Volumes = []corev1.Volume{v}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v", ReadOnly: c.chance(2)}}
}

// play compares the pods until they are over, or for an hour.
func (c *podCase) play(t *testing.T, n int, seen map[string]int) {
	for range 60 {
		c.intervene()
		wait, done := c.settle(t)
		c.theirs.settle(t)
		note(seen, c.ours)
		if diff := cmp.Diff(comparable(t, &c.theirs.pod.Status), comparable(t, &c.ours.Status)); diff != "" {
			t.Errorf("case %d after %s (- kubelet, + simulation):\n%s\n%s", n, time.Since(c.start), diff, c)
			return
		}
		if done != c.theirs.done {
			t.Errorf("case %d after %s: the simulation is done: %v, the kubelet: %v\n%s", n, time.Since(c.start), done,
				c.theirs.done, c)
			return
		}
		if done {
			return
		}
		if wait = c.next(wait); wait == 0 || time.Since(c.start) > time.Hour {
			return
		}
		time.Sleep(wait)
	}
}

// settle advances the simulated pod as far as it gets at the present time.
func (c *podCase) settle(t *testing.T) (wait time.Duration, done bool) {
	for range 100 {
		if wait, done = c.course.Advance(c.ours, time.Now()); done || wait != 1 {
			return wait, done
		}
	}
	t.Fatal("the simulation never rests")
	return 0, false
}

// intervene changes the pod and the objects when it is time.
func (c *podCase) intervene() {
	now := time.Now()
	if !c.appear.After(now) {
		c.objects.configMaps["later"] = &corev1.ConfigMap{Data: map[string]string{"k": "v"}}
		c.objects.secrets["later"] = &corev1.Secret{Data: map[string][]byte{"k": nil}}
	}
	for _, p := range []*corev1.Pod{c.ours, c.theirs.pod} {
		if !c.image.IsZero() && !c.image.After(now) && p.Generation == 1 {
			p.Generation++
			p.Spec.Containers[0].Image = "j:1"
		}
		if !c.deletion.IsZero() && !c.deletion.After(now) && p.DeletionTimestamp == nil {
			p.DeletionGracePeriodSeconds = ptr.To[int64](30)
			p.DeletionTimestamp = &metav1.Time{Time: now.Add(30 * time.Second)}
		}
	}
}

var pause = regexp.MustCompile(`^back-off (\S+) restarting`)

// next returns the time until something happens; 0 is never.
func (c *podCase) next(wait time.Duration) time.Duration {
	now := time.Now()
	least := func(d time.Duration) {
		if d > 0 && (wait == 0 || d < wait) {
			wait = d
		}
	}
	least(c.theirs.cri.due(now))
	least(c.appear.Sub(now))
	least(c.deletion.Sub(now))
	least(c.image.Sub(now))
	s := &c.theirs.pod.Status
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			w, last := list[i].State.Waiting, list[i].LastTerminationState.Terminated
			if w == nil || last == nil {
				continue
			}
			if m := pause.FindStringSubmatch(w.Message); m != nil {
				d, _ := time.ParseDuration(m[1])
				least(last.FinishedAt.Add(d).Sub(now))
			}
		}
	}
	if most := c.theirs.pod.Spec.ActiveDeadlineSeconds; most != nil && s.StartTime != nil {
		least(s.StartTime.Add(time.Duration(*most) * time.Second).Sub(now))
	}
	return wait
}

// comparable returns a status as a client sees it, without names that differ by design.
func comparable(t *testing.T, s *corev1.PodStatus) *corev1.PodStatus {
	text, err := yaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out := &corev1.PodStatus{}
	if err := yaml.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	out.PodIP, out.PodIPs = "", nil
	for _, list := range [][]corev1.ContainerStatus{
		out.InitContainerStatuses, out.ContainerStatuses, out.EphemeralContainerStatuses,
	} {
		for i := range list {
			list[i].ContainerID, list[i].ImageID = "", ""
			for _, state := range []*corev1.ContainerState{&list[i].State, &list[i].LastTerminationState} {
				if state.Terminated != nil {
					state.Terminated.ContainerID = ""
				}
			}
		}
	}
	return out
}

func equalStatus(a, b *corev1.PodStatus) bool { return equality.Semantic.DeepEqual(a, b) }

// note counts the states of a pod.
func note(seen map[string]int, p *corev1.Pod) {
	seen[string(p.Status.Phase)]++
	if p.DeletionTimestamp != nil {
		seen["deleted"]++
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodInitialized && c.Status == corev1.ConditionFalse {
			seen["uninitialized"]++
		}
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if w := list[i].State.Waiting; w != nil {
				seen[w.Reason]++
			}
			if l := list[i].LastTerminationState.Terminated; l != nil {
				seen[l.Reason]++
			}
		}
	}
}

// String describes the pod for a failed test.
func (c *podCase) String() string {
	p := c.ours.DeepCopy()
	p.Status = corev1.PodStatus{}
	p.Spec.EnableServiceLinks, p.Spec.SecurityContext = nil, nil
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			list[i].ImagePullPolicy, list[i].TerminationMessagePath, list[i].TerminationMessagePolicy = "", "", ""
			list[i].LivenessProbe, list[i].ReadinessProbe, list[i].StartupProbe = nil, nil, nil
		}
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("deletion %s, image %s\n%s", c.deletion.Sub(c.start), c.image.Sub(c.start), text)
}

package workloads

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// cases is how many random clusters there are; ORACLE_WORKLOAD_CASES makes it more.
func cases(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("ORACLE_WORKLOAD_CASES"))
	if err != nil {
		return 200
	}
	return n
}

// A pod goes to a node than which kube-scheduler's plugins find none better, or waits with their message, whatever the
// nodes, the pods on them, services and sets are.
func TestSchedulerDecides(t *testing.T) {
	client := schedulerAlone(t)
	k := newKubeScheduler(t)
	makeStorageClasses(t, client)
	r := rand.New(rand.NewPCG(18, 1))
	placed, kept := 0, 0
	for n := range cases(t) {
		c := &schedulerCase{r: r, client: client, stored: n%2 == 1}
		if err := c.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.take(t, c)
		pod := c.pod("new")
		pod, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		best, because, none := k.decide(t, pod)
		c.made = pod
		if len(best) > 0 && !c.bind(t, pod) {
			c.clean(t)
			continue
		}
		node, message := c.outcome(t, pod)
		switch {
		case node != "" && !slices.Contains(best, node):
			t.Errorf("case %d: on %s, not among %v (%s)\n%s", n, node, best, because, c)
		case node == "" && none.anywhere:
			if message != because {
				t.Errorf("case %d: %s\nwant %s\n%s", n, message, because, c)
			}
			kept++
		case node == "" && !strings.HasPrefix(message, because+" no new claims to deallocate, preemption: "):
			t.Errorf("case %d: %s\nwant %v %s\n%s", n, message, best, because, c)
		case node != "":
			placed++
		default:
			kept++
		}
		if t.Failed() {
			return
		}
		c.clean(t)
	}
	if t.Logf("%d placed, %d not", placed, kept); placed == 0 || kept == 0 {
		t.Error("the cases are all of one sort")
	}
}

// schedulerAlone starts a server without nodes, on which the simulated scheduler does its work and nothing else.
func schedulerAlone(t *testing.T) kubernetes.Interface {
	server := testserver.Start(t, testserver.WithWorkloads("nodes=0"), func(c *bowsprit.Config) {
		c.Controllers.Enabled = []string{"-*", "simulated-scheduler"}
		c.Admission.Disabled = append(c.Admission.Disabled, "TaintNodesByCondition", "ServiceAccount",
			"StorageObjectInUseProtection")
	})
	settings := server.RESTConfig()
	settings.QPS, settings.WarningHandler = -1, rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(settings)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// kubeScheduler is the part of kube-scheduler that finds a node: its plugins that look at what is in these cases, with
// their default settings and weights.
type kubeScheduler struct {
	framework framework.Framework
	factory   informers.SharedInformerFactory
	nodes     *currentNodes
}

// currentNodes are those of the current case.
type currentNodes struct{ fwk.SharedLister }

func newKubeScheduler(t *testing.T) *kubeScheduler {
	metrics.Register()
	all, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	profile := all.Profiles[0]
	profile.Plugins.MultiPoint.Enabled = slices.DeleteFunc(profile.Plugins.MultiPoint.Enabled,
		func(p config.Plugin) bool {
			return !slices.Contains([]string{
				"PrioritySort", "DefaultBinder", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity",
				"NodePorts", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity",
				"NodeResourcesBalancedAllocation", "ImageLocality", "VolumeRestrictions", "NodeVolumeLimits",
				"VolumeBinding", "VolumeZone",
			}, p.Name)
		})
	k := &kubeScheduler{
		factory: informers.NewSharedInformerFactory(fake.NewClientset(), 0),
		nodes:   &currentNodes{schedulercache.NewEmptySnapshot()},
	}
	core, storage := k.factory.Core().V1(), k.factory.Storage().V1()
	k.tell(&corev1.PersistentVolume{}, func() cache.SharedIndexInformer { return core.PersistentVolumes().Informer() })
	k.tell(&corev1.PersistentVolumeClaim{},
		func() cache.SharedIndexInformer { return core.PersistentVolumeClaims().Informer() })
	if k.framework, err = frameworkruntime.NewFramework(t.Context(), plugins.NewInTreeRegistry(), &profile,
		frameworkruntime.WithInformerFactory(k.factory), frameworkruntime.WithSnapshotSharedLister(k.nodes),
		frameworkruntime.WithPodNominator(nobody{}),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(storage.CSINodes().Lister())),
	); err != nil {
		t.Fatal(err)
	}
	return k
}

// take makes what is on the server the state that the plugins see.
func (k *kubeScheduler) take(t *testing.T, c *schedulerCase) {
	t.Helper()
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	all, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		nodes = append(nodes, &all.Items[i])
	}
	list, err := c.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	c.nodes, c.pods = nodes, pods
	k.nodes.SharedLister = schedulercache.NewSnapshot(pods, nodes)
	namespaces, err := c.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	k.keep(t, k.factory.Core().V1().Namespaces().Informer(), namespaces, err)
	services, err := c.client.CoreV1().Services("default").List(t.Context(), metav1.ListOptions{})
	k.keep(t, k.factory.Core().V1().Services().Informer(), services, err)
	sets, err := c.client.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{})
	k.keep(t, k.factory.Apps().V1().ReplicaSets().Informer(), sets, err)
	k.takeVolumes(t, c)
}

func (k *kubeScheduler) keep(t *testing.T, in cache.SharedIndexInformer, list runtime.Object, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, item := range items {
		all = append(all, item)
	}
	was := in.GetIndexer().List()
	if err := in.GetIndexer().Replace(all, ""); err != nil {
		t.Fatal(err)
	}
	if told, ok := in.(*toldInformer); ok {
		told.tell(was, all)
	}
}

// refusal is what kube-scheduler knows of a pod that no node takes.
type refusal struct {
	state  fwk.CycleState
	failed framework.FitError
	// anywhere is true if no node was looked at. Then kube-scheduler says no more than that.
	anywhere bool
}

// decide returns the nodes with the highest score or, if none is left, why not. With nodes because says their scores.
func (k *kubeScheduler) decide(t *testing.T, pod *corev1.Pod) (best []string, because string, none refusal) {
	t.Helper()
	nodes, err := k.nodes.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	state := framework.NewCycleState()
	failed := framework.FitError{Pod: pod, NumAllNodes: len(nodes)}
	failed.Diagnosis.NodeToStatus = framework.NewDefaultNodeToStatus()
	if _, status, _ := k.framework.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() {
		if !status.IsRejected() {
			t.Fatal(status)
		}
		failed.Diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		failed.Diagnosis.PreFilterMsg = status.Message()
		return nil, failed.Error(), refusal{state, failed, true}
	}
	var left []fwk.NodeInfo
	for _, n := range nodes {
		if status := k.framework.RunFilterPlugins(t.Context(), state, pod, n); status.IsSuccess() {
			left = append(left, n)
		} else {
			failed.Diagnosis.NodeToStatus.Set(n.Node().Name, status)
		}
	}
	if len(left) == 0 {
		return nil, failed.Error(), refusal{state, failed, false}
	}
	if status := k.framework.RunPreScorePlugins(t.Context(), state, pod, left); !status.IsSuccess() {
		t.Fatal(status)
	}
	scores, status := k.framework.RunScorePlugins(t.Context(), state, pod, left)
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	most := slices.MaxFunc(scores, func(a, b fwk.NodePluginScores) int { return int(a.TotalScore - b.TotalScore) })
	for _, s := range scores {
		because += fmt.Sprintf("%s %d %v; ", s.Name, s.TotalScore, s.Scores)
		if s.TotalScore == most.TotalScore {
			best = append(best, s.Name)
		}
	}
	return best, because, none
}

// schedulerCase is a random cluster.
type schedulerCase struct {
	// ranked gives pods priorities and has budgets keep some of them.
	ranked bool
	// stored gives pods claims, of volumes or of what a provisioner could make.
	stored bool
	r      *rand.Rand
	client kubernetes.Interface
	nodes  []*corev1.Node
	pods   []*corev1.Pod
	set    *appsv1.ReplicaSet
	made   *corev1.Pod
	kept   []*policyv1.PodDisruptionBudget
	// claims and volumes are those before the new pod.
	claims  []corev1.PersistentVolumeClaim
	single  map[string]bool // the names of claims that only one pod may have
	volumes []corev1.PersistentVolume
}

func (c *schedulerCase) String() (text string) {
	for _, n := range c.nodes {
		text += fmt.Sprintf("%s %v %v %v\n", n.Name, n.Labels, n.Spec, n.Status.Allocatable)
	}
	for _, claim := range c.claims {
		text += fmt.Sprintf("claim %s %v %v %v %v deleting %v\n", claim.Name, claim.Annotations, claim.Spec, claim.Status,
			claim.Spec.StorageClassName, claim.DeletionTimestamp)
	}
	for _, v := range c.volumes {
		text += fmt.Sprintf("volume %s %v %v\n", v.Name, v.Labels, v.Spec)
	}
	pods := c.pods
	if c.made != nil {
		pods = append(pods, c.made)
	}
	for _, p := range pods {
		for _, v := range p.Spec.Volumes {
			text += v.PersistentVolumeClaim.ClaimName + " for "
		}
		text += fmt.Sprintf("%s on %s %s %v %v %v %v deleting %v\n", p.Name, p.Spec.NodeName,
			p.Spec.PriorityClassName, p.Labels,
			p.Spec.Containers[0].Resources.Requests, p.Spec.Affinity, p.Spec.TopologySpreadConstraints,
			p.DeletionTimestamp)
	}
	return text
}

// one reports true once in n times.
func (c *schedulerCase) one(n int) bool { return c.r.IntN(n) == 0 }

func (c *schedulerCase) pick(of ...string) string { return of[c.r.IntN(len(of))] }

func (c *schedulerCase) prepare(ctx context.Context) error {
	core := c.client.CoreV1()
	nodes := 2 + c.r.IntN(5)
	for i := range nodes {
		n, err := core.Nodes().Create(ctx, c.node(i), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		n.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:    *apiresource.NewMilliQuantity(int64(1+c.r.IntN(4))*1000, apiresource.DecimalSI),
			corev1.ResourceMemory: *apiresource.NewQuantity(int64(1+c.r.IntN(4))<<30, apiresource.BinarySI),
			corev1.ResourcePods:   *apiresource.NewQuantity(int64(3+c.r.IntN(9)), apiresource.DecimalSI),
		}
		n.Status.Capacity = n.Status.Allocatable
		if _, err := core.Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if c.one(2) {
		_, err := core.Services("default").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "s"},
			Spec:       corev1.ServiceSpec{Selector: c.labels(), Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	if c.one(2) {
		own := map[string]string{"app": "a"}
		set, err := c.client.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: appsv1.ReplicaSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: own}, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: own}, Spec: c.pod("").Spec,
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		c.set = set
	}
	var used []string
	if c.stored {
		if err := c.prepareVolumes(ctx, nodes); err != nil {
			return err
		}
	}
	for i := range c.r.IntN(12) {
		p := c.pod(fmt.Sprintf("old-%d", i))
		p.Spec.NodeName = fmt.Sprintf("n%d", c.r.IntN(nodes))
		// No two have the same port of a node: kube-scheduler, which would not put them there, forgets the port when
		// one of them goes.
		if ports := &p.Spec.Containers[0].Ports; len(*ports) > 0 {
			if use := fmt.Sprint(p.Spec.NodeName, (*ports)[0].HostPort); slices.Contains(used, use) {
				*ports = nil
			} else {
				used = append(used, use)
			}
		}
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { // likewise
			name := v.PersistentVolumeClaim.ClaimName
			taken := c.single[name] && slices.Contains(used, name)
			used = append(used, name)
			return taken
		})
		made, err := core.Pods("default").Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if c.ranked {
			if err := c.start(ctx, made, i); err != nil {
				return err
			}
		}
		if c.one(8) {
			if err := core.Pods("default").Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	if c.ranked {
		return c.budgets(ctx)
	}
	return nil
}

func (c *schedulerCase) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{}}}
	if !c.one(8) {
		n.Labels[corev1.LabelHostname] = n.Name
	}
	if !c.one(4) {
		n.Labels[corev1.LabelTopologyZone] = c.pick("east", "west")
	}
	if c.one(2) {
		n.Labels["disk"] = c.pick("ssd", "hdd")
	}
	for range c.r.IntN(3) {
		if c.one(3) {
			n.Spec.Taints = []corev1.Taint{{Key: c.pick("k", "l"), Value: c.pick("x", "y"), Effect: corev1.TaintEffect(
				c.pick("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"))}}
		}
	}
	n.Spec.Unschedulable = c.one(12)
	return n
}

func (c *schedulerCase) labels() map[string]string {
	out := map[string]string{"app": c.pick("a", "b")}
	if c.one(3) {
		out["tier"] = c.pick("front", "back")
	}
	return out
}

func (c *schedulerCase) selector() *metav1.LabelSelector {
	switch c.r.IntN(8) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return nil
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpExists},
		}}
	default:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": c.pick("a", "b")}}
	}
}

func (c *schedulerCase) key() string {
	return c.pick(corev1.LabelHostname, corev1.LabelTopologyZone, "disk")
}

func (c *schedulerCase) term() corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: c.key(), LabelSelector: c.selector()}
	switch c.r.IntN(5) {
	case 0:
		t.Namespaces = []string{c.pick("default", "kube-system")}
	case 1:
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{
			corev1.LabelMetadataName: c.pick("default", "kube-system"),
		}}
	}
	return t
}

func (c *schedulerCase) wishes() (out []corev1.WeightedPodAffinityTerm) {
	for range c.r.IntN(3) {
		out = append(out, corev1.WeightedPodAffinityTerm{Weight: int32(1 + c.r.IntN(100)), PodAffinityTerm: c.term()})
	}
	return out
}

func (c *schedulerCase) affinity() *corev1.Affinity {
	a := &corev1.Affinity{}
	if c.one(3) {
		a.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: c.wishes()}
		if c.one(4) {
			a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{c.term()}
		}
	}
	if c.one(3) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: c.wishes()}
		if c.one(6) {
			a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{c.term()}
		}
	}
	if c.one(4) {
		a.NodeAffinity = &corev1.NodeAffinity{}
		for range 1 + c.r.IntN(2) {
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
				a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
					Weight: int32(1 + c.r.IntN(100)), Preference: corev1.NodeSelectorTerm{
						MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{c.pick("ssd", "hdd")}},
						},
					},
				})
		}
	}
	return a
}

func (c *schedulerCase) constraints() (out []corev1.TopologySpreadConstraint) {
	keys := []string{corev1.LabelHostname, corev1.LabelTopologyZone, "disk"}
	c.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:c.r.IntN(3)] {
		one := corev1.TopologySpreadConstraint{
			MaxSkew: int32(1 + c.r.IntN(3)), TopologyKey: key, LabelSelector: c.selector(),
			WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(
				c.pick("ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule")),
		}
		if one.WhenUnsatisfiable == corev1.DoNotSchedule && c.one(3) {
			one.MinDomains = new(int32(1 + c.r.IntN(3)))
		}
		if c.one(3) {
			one.NodeAffinityPolicy = new(corev1.NodeInclusionPolicy(c.pick("Honor", "Ignore")))
		}
		if c.one(3) {
			one.NodeTaintsPolicy = new(corev1.NodeInclusionPolicy(c.pick("Honor", "Ignore")))
		}
		if c.one(4) && one.LabelSelector != nil && one.LabelSelector.MatchExpressions == nil {
			one.MatchLabelKeys = []string{"tier"}
		}
		out = append(out, one)
	}
	return out
}

func (c *schedulerCase) pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels()}}
	for i := range 1 + c.r.IntN(2) {
		container := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "image"}
		requests := corev1.ResourceList{}
		if c.one(2) {
			requests[corev1.ResourceCPU] = apiresource.MustParse(c.pick("0", "50m", "300m", "1"))
		}
		if c.one(2) {
			requests[corev1.ResourceMemory] = apiresource.MustParse(c.pick("0", "64Mi", "512Mi", "1Gi"))
		}
		container.Resources.Requests = requests
		if c.one(10) && i == 0 {
			port := int32(c.r.IntN(2) + 8000)
			container.Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
		}
		if p.Spec.Containers = append(p.Spec.Containers, container); c.one(6) {
			container.Name, container.Ports = fmt.Sprintf("i%d", i), nil
			p.Spec.InitContainers = append(p.Spec.InitContainers, container)
		}
	}
	if c.ranked {
		c.rank(p)
	}
	if c.stored && c.one(2) {
		c.claim(p)
	}
	p.Spec.Affinity = c.affinity()
	if c.one(3) {
		p.Spec.TopologySpreadConstraints = c.constraints()
	}
	if c.one(8) {
		p.Spec.NodeSelector = map[string]string{"disk": c.pick("ssd", "hdd")}
	}
	if c.one(3) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: c.pick("k", "l", ""), Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffect(c.pick("", "NoSchedule", "PreferNoSchedule"))}}
	}
	if c.set != nil && c.one(2) {
		p.Labels["app"] = "a"
		p.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(c.set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
		}
	}
	return p
}

// outcome waits until the new pod has a node, or its first message that says why it has none.
func (c *schedulerCase) outcome(t *testing.T, pod *corev1.Pod) (node, message string) {
	t.Helper()
	c.await(t, pod, func(p *corev1.Pod) bool {
		c.made, node = p, p.Spec.NodeName
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				message = condition.Message
			}
		}
		return node != "" || message != ""
	})
	return node, message
}

// await waits for the first state of a pod, from the given one on, that is as it is to be.
func (c *schedulerCase) await(t *testing.T, pod *corev1.Pod, as func(*corev1.Pod) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes, err := c.client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", pod.Name).String(),
		ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	for ev := range changes.ResultChan() {
		if p, ok := ev.Object.(*corev1.Pod); !ok || as(p) {
			if !ok {
				t.Fatalf("pod %s: %+v", pod.Name, ev.Object)
			}
			return
		}
	}
	t.Fatalf("pod %s does not come to the state that is awaited\n%s", pod.Name, c)
}

func (c *schedulerCase) clean(t *testing.T) {
	t.Helper()
	core, now := c.client.CoreV1(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	errs := []error{core.Pods("default").DeleteCollection(t.Context(), now, metav1.ListOptions{}),
		core.Nodes().DeleteCollection(t.Context(), now, metav1.ListOptions{}),
		c.client.AppsV1().ReplicaSets("default").DeleteCollection(t.Context(), now, metav1.ListOptions{}),
		core.Services("default").Delete(t.Context(), "s", now),
		c.client.PolicyV1().PodDisruptionBudgets("default").DeleteCollection(t.Context(), now, metav1.ListOptions{}),
	}
	errs = append(errs, c.cleanVolumes(t.Context()))
	for _, err := range errs {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

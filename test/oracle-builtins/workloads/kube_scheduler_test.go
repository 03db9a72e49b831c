package workloads

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
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
)

// kubeScheduler is the part of kube-scheduler that finds a node: its plugins for the parts of these cases, with their
// default settings and weights.
type kubeScheduler struct {
	framework framework.Framework
	factory   informers.SharedInformerFactory
	nodes     *currentNodes
}

// currentNodes are the nodes of the current case.
type currentNodes struct {
	fwk.MutableSnapshotSharedLister
}

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
	k.replaceInformer(&corev1.PersistentVolume{},
		func() cache.SharedIndexInformer { return core.PersistentVolumes().Informer() })
	k.replaceInformer(&corev1.PersistentVolumeClaim{},
		func() cache.SharedIndexInformer { return core.PersistentVolumeClaims().Informer() })
	if k.framework, err = frameworkruntime.NewFramework(t.Context(), plugins.NewInTreeRegistry(), &profile,
		frameworkruntime.WithInformerFactory(k.factory), frameworkruntime.WithSnapshotSharedLister(k.nodes),
		frameworkruntime.WithMutableSnapshotLister(k.nodes), frameworkruntime.WithPodNominator(noneNominated{}),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(storage.CSINodes().Lister())),
	); err != nil {
		t.Fatal(err)
	}
	return k
}

// take gives the plugins the current state of the server.
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
	k.nodes.MutableSnapshotSharedLister = schedulercache.NewSnapshot(pods, nodes)
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
	if informer, ok := in.(*toldInformer); ok {
		informer.notify(was, all)
	}
}

// decision is kube-scheduler's decision about a pod.
type decision struct {
	best    []string // the nodes with the highest score
	because string   // their scores or, without any, why no node is left
	// anywhere is true if the pod is refused before the plugins check nodes. Then kube-scheduler gives no reasons for
	// nodes.
	anywhere bool

	state  fwk.CycleState
	failed framework.FitError
}

// preempting comes between why no node is left and why preemption does not help.
const preempting = " preemption: "

func (k *kubeScheduler) decide(t *testing.T, pod *corev1.Pod) (d decision) {
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
		return decision{because: failed.Error(), anywhere: true, state: state, failed: failed}
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
		return decision{because: failed.Error(), state: state, failed: failed}
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
		d.because += fmt.Sprintf("%s %d %v; ", s.Name, s.TotalScore, s.Scores)
		if s.TotalScore == most.TotalScore {
			d.best = append(d.best, s.Name)
		}
	}
	return d
}

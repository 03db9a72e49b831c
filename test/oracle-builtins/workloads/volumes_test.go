package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	helper "k8s.io/component-helpers/storage/volume"
)

// driver makes the volumes of random clusters.
const driver = "csi.example.com"

// makeStorageClasses makes classes of every sort. Claims of some wait for a pod: with a provisioner, without one, or in
// one zone only. Claims of the others do not wait.
func makeStorageClasses(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	waits, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	for _, class := range []storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "wait"}, Provisioner: driver, VolumeBindingMode: &waits},
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Provisioner: "other.example.com", VolumeBindingMode: &waits},
		{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: helper.NotSupportedProvisioner,
			VolumeBindingMode: &waits},
		{ObjectMeta: metav1.ObjectMeta{Name: "zoned"}, Provisioner: driver, VolumeBindingMode: &waits,
			AllowedTopologies: []corev1.TopologySelectorTerm{{
				MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
					{Key: corev1.LabelTopologyZone, Values: []string{"east"}},
				},
			}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "now"}, Provisioner: driver, VolumeBindingMode: &now},
	} {
		_, err := client.StorageV1().StorageClasses().Create(t.Context(), &class, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// toldInformer is an informer that reads from no server: tests put objects into its store and call its handlers.
type toldInformer struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

// AddEventHandler implements cache.SharedInformer.
func (i *toldInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	return i.SharedIndexInformer.AddEventHandler(h)
}

func (i *toldInformer) notify(gone, now []any) {
	for _, h := range i.handlers {
		for _, o := range gone {
			h.OnDelete(o)
		}
		for _, o := range now {
			h.OnAdd(o, false)
		}
	}
}

// notify replaces the informer of a type with a toldInformer.
func (k *kubeScheduler) replaceInformer(of runtime.Object, ask func() cache.SharedIndexInformer) {
	index := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	k.factory.InformerFor(of, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return &toldInformer{SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, of, 0, index)}
	})
	ask()
}

// takeVolumes is take for the volumes of pods.
func (k *kubeScheduler) takeVolumes(t *testing.T, c *schedulerCase) {
	t.Helper()
	all, core, storage := metav1.ListOptions{}, k.factory.Core().V1(), k.factory.Storage().V1()
	volumes, err := c.client.CoreV1().PersistentVolumes().List(t.Context(), all)
	k.keep(t, core.PersistentVolumes().Informer(), volumes, err)
	claims, err := c.client.CoreV1().PersistentVolumeClaims("default").List(t.Context(), all)
	k.keep(t, core.PersistentVolumeClaims().Informer(), claims, err)
	classes, err := c.client.StorageV1().StorageClasses().List(t.Context(), all)
	k.keep(t, storage.StorageClasses().Informer(), classes, err)
	nodes, err := c.client.StorageV1().CSINodes().List(t.Context(), all)
	k.keep(t, storage.CSINodes().Informer(), nodes, err)
	attached, err := c.client.StorageV1().VolumeAttachments().List(t.Context(), all)
	k.keep(t, storage.VolumeAttachments().Informer(), attached, err)
	c.volumes, c.claims = volumes.Items, claims.Items
}

// claimNames are the claims of pods in random clusters, existing or not.
var claimNames = []string{"p0", "p1", "p2", "p3", "p4"}

func (c *schedulerCase) claim(p *corev1.Pod) {
	for i, n := range c.r.Perm(len(claimNames))[:1+c.r.IntN(2)] {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
			Name: fmt.Sprintf("v%d", i), VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimNames[n]},
			},
		})
	}
}

// prepareVolumes makes volumes, claims in every state, and nodes that have room for few volumes.
func (c *schedulerCase) prepareVolumes(ctx context.Context, nodes int) error {
	c.single = map[string]bool{}
	for i := range c.r.IntN(5) {
		if err := c.volume(ctx, fmt.Sprintf("v%d", i), nil); err != nil {
			return err
		}
	}
	for _, name := range claimNames {
		if err := c.makeClaim(ctx, name, nodes); err != nil {
			return err
		}
	}
	for i := range nodes {
		if !c.one(2) {
			continue
		}
		node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}
		node.Spec.Drivers = []storagev1.CSINodeDriver{{Name: driver, NodeID: node.Name,
			Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(c.r.IntN(4)))}}}
		if _, err := c.client.StorageV1().CSINodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for i := range c.r.IntN(3) {
		a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%d", i)}}
		a.Spec = storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: fmt.Sprintf("n%d", c.r.IntN(nodes)),
			Source: storagev1.VolumeAttachmentSource{
				PersistentVolumeName: new(c.pick("v0", "v1", "of-p0", "of-p1")),
			}}
		if _, err := c.client.StorageV1().VolumeAttachments().Create(ctx, a, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// volume makes a volume, with a claim if of is not nil.
func (c *schedulerCase) volume(ctx context.Context, name string, of *corev1.PersistentVolumeClaim) error {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: apiresource.MustParse(c.pick("1Gi", "2Gi", "5Gi")),
			},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              c.pick("local", "wait", "zoned", ""),
		},
	}
	if c.one(3) {
		v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/" + name}
	} else {
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: c.pick(name, name, "same")}
	}
	if c.one(2) {
		match := corev1.NodeSelectorRequirement{Operator: corev1.NodeSelectorOpIn}
		if match.Key = corev1.LabelTopologyZone; c.one(2) {
			match.Values = []string{c.pick("east", "west")}
		} else {
			match.Key, match.Values = corev1.LabelHostname, []string{c.pick("n0", "n1", "n2", "n3")}
		}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{match},
			}},
		}}
	}
	if c.one(4) {
		v.Labels[c.pick(corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone)] =
			c.pick("east", "west", "east__west")
	}
	if of != nil {
		v.Spec.ClaimRef = &corev1.ObjectReference{
			Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: of.Namespace, Name: of.Name, UID: of.UID,
		}
	}
	_, err := c.client.CoreV1().PersistentVolumes().Create(ctx, v, metav1.CreateOptions{})
	return err
}

// makeClaim makes a claim in some state, or none.
func (c *schedulerCase) makeClaim(ctx context.Context, name string, nodes int) error {
	api := c.client.CoreV1().PersistentVolumeClaims("default")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	claim.Spec.Resources.Requests = corev1.ResourceList{
		corev1.ResourceStorage: apiresource.MustParse(c.pick("1Gi", "2Gi", "3Gi")),
	}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if c.single[name] = c.one(4); c.single[name] {
		claim.Spec.AccessModes[0] = corev1.ReadWriteOncePod
	}
	phase, bound := corev1.ClaimPending, false
	switch n := c.r.IntN(20); {
	case n == 0: // no claim
		return nil
	case n == 1:
		claim.Spec.StorageClassName = new(c.pick("now", "", "nosuch"))
	case n == 2:
		claim.Spec.VolumeName, phase = "gone", corev1.ClaimLost
		claim.Annotations[helper.AnnBindCompleted] = "yes"
	case n == 3:
		claim.Spec.VolumeName, phase = "gone", corev1.ClaimBound
		claim.Annotations[helper.AnnBindCompleted] = "yes"
	case n < 12:
		claim.Spec.VolumeName, phase, bound = "of-"+name, corev1.ClaimBound, true
		claim.Annotations[helper.AnnBindCompleted] = "yes"
	default:
		claim.Spec.StorageClassName = new(c.pick("wait", "other", "local", "zoned"))
		if c.one(5) {
			claim.Annotations[helper.AnnSelectedNode] = fmt.Sprintf("n%d", c.r.IntN(nodes))
		}
	}
	leaves := c.one(20)
	if leaves {
		claim.Finalizers = []string{"example.com/keep"}
	}
	claim, err := api.Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if claim.Status.Phase = phase; phase != corev1.ClaimPending {
		if claim, err = api.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if bound {
		if err := c.volume(ctx, "of-"+name, claim); err != nil {
			return err
		}
	}
	if leaves {
		return api.Delete(ctx, name, metav1.DeleteOptions{})
	}
	return nil
}

// bind acts as Kubernetes' volume controller: when the scheduler has reserved the new pod's claims, it binds the
// claims, and the pod gets its node. It returns false if the claims were already as the scheduler would make them, so
// that its decision has no visible effect.
func (c *schedulerCase) bind(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	open := map[types.UID]*corev1.PersistentVolumeClaim{}
	for _, v := range pod.Spec.Volumes {
		for i := range c.claims {
			claim := &c.claims[i]
			if v.PersistentVolumeClaim.ClaimName == claim.Name && claim.Spec.VolumeName == "" {
				open[claim.UID] = claim
			}
		}
	}
	if len(open) == 0 {
		return true
	}
	reserved := map[*corev1.PersistentVolumeClaim]string{} // the volume's name
	for uid, claim := range open {
		if claim.Annotations[helper.AnnSelectedNode] != "" {
			reserved[claim] = "made-" + claim.Name
			delete(open, uid)
		}
	}
	if len(open) == 0 {
		return false
	}
	since := metav1.ListOptions{ResourceVersion: pod.ResourceVersion}
	claims, err := c.client.CoreV1().PersistentVolumeClaims("default").Watch(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	defer claims.Stop()
	volumes, err := c.client.CoreV1().PersistentVolumes().Watch(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	defer volumes.Stop()
	for len(open) > 0 {
		var uid types.UID
		name := ""
		select {
		case ev := <-claims.ResultChan():
			if claim, ok := ev.Object.(*corev1.PersistentVolumeClaim); ok &&
				claim.Annotations[helper.AnnSelectedNode] != "" {
				uid, name = claim.UID, "made-"+claim.Name
			}
		case ev := <-volumes.ResultChan():
			if v, ok := ev.Object.(*corev1.PersistentVolume); ok && v.Spec.ClaimRef != nil {
				uid, name = v.Spec.ClaimRef.UID, v.Name
			}
		}
		if claim := open[uid]; claim != nil {
			reserved[claim] = name
			delete(open, uid)
		}
	}
	for claim, volume := range reserved {
		if err := c.bindTo(t.Context(), claim, volume); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

func (c *schedulerCase) bindTo(ctx context.Context, of *corev1.PersistentVolumeClaim, volume string) error {
	if !slices.ContainsFunc(c.volumes, func(v corev1.PersistentVolume) bool { return v.Name == volume }) {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: corev1.PersistentVolumeSpec{
			AccessModes: of.Spec.AccessModes, Capacity: of.Spec.Resources.Requests,
			StorageClassName: *of.Spec.StorageClassName,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: volume,
			}},
			ClaimRef: &corev1.ObjectReference{Namespace: of.Namespace, Name: of.Name, UID: of.UID},
		}}
		if _, err := c.client.CoreV1().PersistentVolumes().Create(ctx, v, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err := c.client.CoreV1().PersistentVolumeClaims(of.Namespace).Patch(ctx, of.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"yes"}},"spec":{"volumeName":%q}}`, helper.AnnBindCompleted,
			volume), metav1.PatchOptions{})
	return err
}

func (c *schedulerCase) cleanVolumes(ctx context.Context) error {
	if !c.stored {
		return nil
	}
	all, now := metav1.ListOptions{}, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	core, storage := c.client.CoreV1(), c.client.StorageV1()
	for i := range c.claims {
		if len(c.claims[i].Finalizers) > 0 {
			if _, err := core.PersistentVolumeClaims("default").Patch(ctx, c.claims[i].Name, types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				return err
			}
		}
	}
	return errors.Join(
		core.PersistentVolumeClaims("default").DeleteCollection(ctx, now, all),
		core.PersistentVolumes().DeleteCollection(ctx, now, all),
		storage.CSINodes().DeleteCollection(ctx, now, all),
		storage.VolumeAttachments().DeleteCollection(ctx, now, all),
	)
}

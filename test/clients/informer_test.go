package clients

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	stablev1 "github.com/bowsprit/bowsprit/test/clients/api/stable/v1"
	"github.com/bowsprit/bowsprit/test/clients/generated/clientset/versioned"
	"github.com/bowsprit/bowsprit/test/clients/generated/informers/externalversions"
)

var cronTabs = stablev1.SchemeGroupVersion.WithResource("crontabs")

// TestInformers: the informers of client-go in all their forms agree with each other, before and after changes.
func TestInformers(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	typed, err := versioned.NewForConfig(config)
	must(t, err)
	crons := typed.StableV1().CronTabs("default")
	name := func(i int) string { return fmt.Sprintf("cron-%03d", i) }
	create := func(i int) {
		_, err := crons.Create(ctx,
			&stablev1.CronTab{ObjectMeta: metav1.ObjectMeta{
				Name: name(i), Labels: map[string]string{"third": fmt.Sprint(i % 3)},
			},
				Spec: stablev1.CronTabSpec{Image: "image"}}, metav1.CreateOptions{})
		must(t, err)
	}
	for i := range 150 {
		create(i)
	}

	dynamicClient, err := dynamic.NewForConfig(config)
	must(t, err)
	metadataClient, err := metadata.NewForConfig(config)
	must(t, err)
	generated := externalversions.NewSharedInformerFactory(typed, 0)
	dynamics := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	metadatas := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	selected := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, "default",
		func(o *metav1.ListOptions) { o.LabelSelector = "third=1" })
	all := map[string]cache.SharedIndexInformer{
		"typed":    generated.Stable().V1().CronTabs().Informer(),
		"dynamic":  dynamics.ForResource(cronTabs).Informer(),
		"metadata": metadatas.ForResource(cronTabs).Informer(),
		"selected": selected.ForResource(cronTabs).Informer(),
	}
	lister := generated.Stable().V1().CronTabs().Lister().CronTabs("default")
	for _, factory := range []interface{ Start(<-chan struct{}) }{generated, dynamics, metadatas, selected} {
		factory.Start(ctx.Done())
	}
	for change, informer := range all {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			t.Fatalf("the %s informer did not fill", change)
		}
	}

	for i := 150; i < 300; i++ {
		create(i)
	}
	for i := range 50 { // a third of them leaves the selection, another third enters it
		_, err := crons.Patch(ctx, name(i), types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"third":"%d"}}}`, (i+1)%3), metav1.PatchOptions{})
		must(t, err)
	}
	must(t, crons.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "third=2"}))
	listed, err := crons.List(ctx, metav1.ListOptions{})
	must(t, err)
	if len(listed.Items) < 150 || len(listed.Items) > 250 {
		t.Fatalf("%d objects are left", len(listed.Items))
	}
	states := func(keep func(labels.Set) bool) (out []string) {
		for _, cron := range listed.Items {
			if keep(cron.Labels) {
				out = append(out, cron.Name+"@"+cron.ResourceVersion)
			}
		}
		slices.Sort(out)
		return out
	}
	for change, informer := range all {
		want := states(func(l labels.Set) bool { return change != "selected" || l["third"] == "1" })
		until(ctx, t, "the "+change+" informer shows what a list shows", func() (bool, error) {
			var got []string
			for _, obj := range informer.GetStore().List() {
				m := obj.(metav1.Object)
				got = append(got, m.GetName()+"@"+m.GetResourceVersion())
			}
			slices.Sort(got)
			return slices.Equal(got, want), fmt.Errorf("%d of %d", len(got), len(want))
		})
	}
	cached, err := lister.List(labels.SelectorFromSet(labels.Set{"third": "0"}))
	must(t, err)
	if want := states(func(l labels.Set) bool { return l["third"] == "0" }); len(cached) != len(want) {
		t.Errorf("the lister finds %d, want %d", len(cached), len(want))
	}
}

// TestTypedClient uses the output of client-gen for a kind with status and scale, and the scale client of the
// autoscaler.
func TestTypedClient(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	typed, err := versioned.NewForConfig(config)
	must(t, err)
	crons := typed.StableV1().CronTabs("default")
	made, err := crons.Create(ctx,
		&stablev1.CronTab{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "cron-"}, Spec: stablev1.CronTabSpec{CronSpec: "* * * * *"},
		}, metav1.CreateOptions{})
	must(t, err)
	if ptr.Deref(made.Spec.Replicas, 0) != 1 || made.Generation != 1 {
		t.Errorf("not defaulted: %+v", made)
	}
	made.Status.Replicas, made.Status.LabelSelector = 1, "app=cron"
	made, err = crons.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	must(t, err)
	if made.Generation != 1 || made.Status.Replicas != 1 {
		t.Errorf("status: %+v", made)
	}

	current, err := crons.GetScale(ctx, made.Name, metav1.GetOptions{})
	must(t, err)
	if current.Spec.Replicas != 1 || current.Status.Replicas != 1 || current.Status.Selector != "app=cron" {
		t.Errorf("scale: %+v", current)
	}
	current.Spec.Replicas = 4
	_, err = crons.UpdateScale(ctx, made.Name, current, metav1.UpdateOptions{})
	must(t, err)

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(
		memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(config)))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(discovery.NewDiscoveryClientForConfigOrDie(config)))
	must(t, err)
	seen, err := scales.Scales("default").Get(ctx, cronTabs.GroupResource(), made.Name, metav1.GetOptions{})
	must(t, err)
	if seen.Spec.Replicas != 4 {
		t.Errorf("the autoscaler sees %d replicas", seen.Spec.Replicas)
	}
	seen.Spec.Replicas = 101
	if _, err := scales.Scales("default").Update(ctx, cronTabs.GroupResource(), seen,
		metav1.UpdateOptions{}); err == nil {
		t.Error("more replicas than the schema permits")
	}
	must(t, crons.Delete(ctx, made.Name, metav1.DeleteOptions{}))
}

// TestBuiltinInformers checks typed informers of built-in kinds with protobuf, and with CBOR where a client supports
// it.
func TestBuiltinInformers(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	for _, contentType := range []string{"application/vnd.kubernetes.protobuf", "application/cbor",
		"application/json"} {
		config := rest.CopyConfig(config)
		config.ContentType = contentType
		config.AcceptContentTypes = contentType + ",application/json"
		client, err := kubernetes.NewForConfig(config)
		must(t, err)
		factory := informers.NewSharedInformerFactory(client, 0)
		secrets := factory.Core().V1().Secrets()
		pods := factory.Core().V1().Pods()
		secrets.Informer()
		pods.Informer()
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		name := "from-" + string(contentType[len(contentType)-4:])
		_, err = client.CoreV1().Secrets("default").Create(ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"bytes": {0, 1, 255}}},
			metav1.CreateOptions{})
		must(t, err)
		_, err = client.CoreV1().Pods("default").Create(ctx,
			&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}, metav1.CreateOptions{})
		must(t, err)
		until(ctx, t, contentType, func() (bool, error) {
			secret, err := secrets.Lister().Secrets("default").Get(name)
			if err != nil {
				return false, err
			}
			if string(secret.Data["bytes"]) != "\x00\x01\xff" || secret.Type != corev1.SecretTypeOpaque {
				t.Fatalf("%s: %+v", contentType, secret)
			}
			pod, err := pods.Lister().Pods("default").Get(name)
			if err != nil {
				return false, err
			}
			if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || pod.Status.Phase != corev1.PodPending {
				t.Fatalf("%s: %+v", contentType, pod)
			}
			return true, nil
		})
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	must(t, err)
	list, err := dynamicClient.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List(ctx, metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 3 ||
		!slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetName() == "from-cbor" }) {
		t.Errorf("%d pods", len(list.Items))
	}
}

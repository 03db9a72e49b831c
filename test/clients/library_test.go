package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

func builtins(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"made": "here"}},
	}
}

// TestReading checks pages, a list by a watch, metadata alone, and a wait for a condition.
func TestReading(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	var streamed atomic.Int64
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("sendInitialEvents") == "true" {
				streamed.Add(1)
			}
			return next.RoundTrip(r)
		})
	}
	client := builtins(t, config)
	maps := client.CoreV1().ConfigMaps("default")
	for i := range 100 {
		_, err := maps.Create(ctx, configMap(fmt.Sprintf("m-%02d", i)), metav1.CreateOptions{})
		must(t, err)
	}

	pages, seen := 0, 0
	p := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
		pages++
		return maps.List(ctx, o)
	}))
	p.PageSize = 7
	must(t,
		p.EachListItem(ctx, metav1.ListOptions{LabelSelector: "made=here"},
			func(runtime.Object) error { seen++; return nil }))
	if seen != 100 || pages != 15 {
		t.Errorf("%d objects in %d pages", seen, pages)
	}

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if n := len(informer.GetStore().List()); n < 100 || streamed.Load() != 1 {
		t.Errorf("%d objects through %d streamed lists", n, streamed.Load())
	}

	m, err := metadata.NewForConfig(config)
	must(t, err)
	partial := m.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
	one, err := partial.Patch(ctx, "m-00", types.MergePatchType, []byte(`{"metadata":{"labels":{"made":"there"}}}`),
		metav1.PatchOptions{})
	must(t, err)
	if one.Labels["made"] != "there" {
		t.Errorf("%+v", one)
	}
	must(t, partial.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "made=here"}))
	left, err := partial.List(ctx, metav1.ListOptions{LabelSelector: "made"})
	must(t, err)
	if len(left.Items) != 1 || left.Items[0].Name != "m-00" {
		t.Errorf("%d are left", len(left.Items))
	}

	go func() {
		_, _ = maps.Patch(ctx, "m-00", types.MergePatchType, []byte(`{"data":{"done":"yes"}}`), metav1.PatchOptions{})
	}()
	last, err := watchtools.Until(ctx, left.ResourceVersion, lwOfOne(client, "m-00"),
		func(e watch.Event) (bool, error) {
			cm, ok := e.Object.(*corev1.ConfigMap)
			return ok && cm.Data["done"] == "yes", nil
		})
	must(t, err)
	if last.Type != watch.Modified {
		t.Errorf("%+v", last)
	}
	_, err = watchtools.UntilWithSync(ctx, lwOfOne(client, "m-00"), &corev1.ConfigMap{}, nil,
		func(e watch.Event) (bool, error) {
			return e.Object.(*corev1.ConfigMap).Data["done"] == "yes", nil
		})
	must(t, err)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func lwOfOne(client kubernetes.Interface, name string) *cache.ListWatch {
	return cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", "default",
		func(o *metav1.ListOptions) {
			o.FieldSelector = "metadata.name=" + name
		})
}

// TestWriting checks many writers of one object, apply with generated types, conflicts and force.
func TestWriting(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	client := builtins(t, config)
	maps := client.CoreV1().ConfigMaps("default")
	_, err := maps.Create(ctx, configMap("counter"), metav1.CreateOptions{})
	must(t, err)
	// eight writers are in each other's way
	patience := wait.Backoff{Steps: 1000, Duration: time.Millisecond, Jitter: 1}
	var writers sync.WaitGroup
	failures := make(chan error, 8)
	for range 8 {
		writers.Go(func() {
			for range 10 {
				if err := retry.RetryOnConflict(patience, func() error { return increment(ctx, client) }); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	writers.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	counter, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	must(t, err)
	if counter.Data["n"] != "80" {
		t.Errorf("80 increments make %s", counter.Data["n"])
	}

	deployments := client.AppsV1().Deployments("default")
	web := func(image string, replicas int32) *appsapply.DeploymentApplyConfiguration {
		labels := map[string]string{"app": "web"}
		return appsapply.Deployment("web", "default").WithSpec(appsapply.DeploymentSpec().WithReplicas(replicas).
			WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(
				coreapply.PodTemplateSpec().WithLabels(
					labels).WithSpec(
					coreapply.PodSpec().WithContainers(coreapply.Container().WithName("web").WithImage(image)))))
	}
	_, err = deployments.Apply(ctx, web("web:1", 1), metav1.ApplyOptions{FieldManager: "one"})
	must(t, err)
	_, err = deployments.Apply(ctx, web("web:2", 1), metav1.ApplyOptions{FieldManager: "two"})
	if !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), `conflict with "one": .spec.template.spec.containers[name="web"].image`) {
		t.Errorf("a conflict is wanted: %v", err)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || len(status.Status().Details.Causes) != 1 ||
		status.Status().Details.Causes[0].Type != metav1.CauseTypeFieldManagerConflict {
		t.Errorf("causes: %+v", status)
	}
	made, err := deployments.Apply(ctx, web("web:2", 1), metav1.ApplyOptions{FieldManager: "two", Force: true})
	must(t, err)
	ours, err := appsapply.ExtractDeployment(made, "one")
	must(t, err)
	if c := ours.Spec.Template.Spec.Containers; len(c) != 1 || c[0].Image != nil {
		t.Errorf("one still owns %+v", c)
	}
	ours, err = appsapply.ExtractDeployment(made, "two")
	must(t, err)
	if *ours.Spec.Template.Spec.Containers[0].Image != "web:2" || *ours.Spec.Replicas != 1 {
		t.Errorf("two owns %+v", ours.Spec)
	}
	_, err = deployments.ApplyStatus(ctx,
		appsapply.Deployment("web", "default").WithStatus(appsapply.DeploymentStatus().WithReplicas(3)),
		metav1.ApplyOptions{FieldManager: "status"})
	must(t, err)
	scaled, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	must(t, err)
	if scaled.Status.Replicas != 3 || scaled.Status.Selector != "app=web" {
		t.Errorf("scale: %+v", scaled.Status)
	}
}

func increment(ctx context.Context, client kubernetes.Interface) error {
	cm, err := client.CoreV1().ConfigMaps("default").Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(cm.Data["n"])
	cm.Data = map[string]string{"n": strconv.Itoa(n + 1)}
	_, err = client.CoreV1().ConfigMaps("default").Update(ctx, cm, metav1.UpdateOptions{})
	return err
}

// TestEvents checks both recorders, and their handling of a repeated message.
func TestEvents(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	client := builtins(t, config)
	about, err := client.CoreV1().ConfigMaps("default").Create(ctx, configMap("about"), metav1.CreateOptions{})
	must(t, err)

	older := record.NewBroadcaster(record.WithContext(ctx))
	defer older.Shutdown()
	older.StartRecordingToSink(&typedSink{client})
	recorder := older.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "older"})
	for range 3 {
		recorder.Eventf(about, corev1.EventTypeNormal, "Again", "says %s", "the same")
	}
	until(ctx, t, "three times in one event", func() (bool, error) {
		list, err := client.CoreV1().Events("default").List(ctx,
			metav1.ListOptions{FieldSelector: "reason=Again,involvedObject.name=about"})
		return err == nil && len(list.Items) == 1 && list.Items[0].Count == 3 &&
			list.Items[0].Source.Component == "older", err
	})

	newer := events.NewEventBroadcasterAdapterWithContext(ctx, client)
	newer.StartRecordingToSink(ctx.Done())
	defer newer.Shutdown()
	modern := newer.NewRecorder("example.com/newer")
	for range 2 {
		modern.Eventf(about, nil, corev1.EventTypeWarning, "Twice", "Acting", "says the same")
	}
	until(ctx, t, "a series", func() (bool, error) {
		list, err := client.EventsV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=Twice"})
		return err == nil && len(list.Items) == 1 && list.Items[0].Series != nil && list.Items[0].Series.Count == 2 &&
			list.Items[0].ReportingController == "example.com/newer", err
	})
	seen, err := client.CoreV1().Events("default").List(ctx,
		metav1.ListOptions{FieldSelector: "reason=Twice,type=Warning,reportingComponent=example.com/newer"})
	must(t, err)
	if len(seen.Items) != 1 || seen.Items[0].Message != "says the same" ||
		seen.Items[0].InvolvedObject.UID != about.UID {
		t.Errorf("through the older group: %+v", seen.Items)
	}
	_, err = client.EventsV1().Events("default").Create(ctx,
		&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("an event without anything: %v", err)
	}
}

// typedSink writes events as kube-controller-manager does.
type typedSink struct{ kubernetes.Interface }

func (s *typedSink) Create(e *corev1.Event) (*corev1.Event, error) {
	return s.CoreV1().Events(e.Namespace).CreateWithEventNamespaceWithContext(context.Background(), e)
}

func (s *typedSink) Update(e *corev1.Event) (*corev1.Event, error) {
	return s.CoreV1().Events(e.Namespace).UpdateWithEventNamespaceWithContext(context.Background(), e)
}

func (s *typedSink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.CoreV1().Events(e.Namespace).PatchWithEventNamespaceWithContext(context.Background(), e, data)
}

// TestLeaderElection: one of two leads; when it dies without a word, the other takes over.
func TestLeaderElection(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	client := builtins(t, config)
	leads := make(chan string, 2)
	candidate := func(ctx context.Context, name string) {
		lock := &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "election"}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second,
			RetryPeriod: 200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name }, OnStoppedLeading: func() {},
			},
		})
	}
	var both sync.WaitGroup
	defer both.Wait()
	stops := map[string]context.CancelFunc{}
	for _, name := range []string{"a", "b"} {
		running, stop := context.WithCancel(ctx)
		defer stop()
		stops[name] = stop
		both.Go(func() { candidate(running, name) })
	}
	first := <-leads
	stops[first]() // without giving the lease back
	second := <-leads
	if first == second {
		t.Errorf("%s leads twice", first)
	}
	lease, err := client.CoordinationV1().Leases("default").Get(ctx, "election", metav1.GetOptions{})
	must(t, err)
	if *lease.Spec.HolderIdentity != second || *lease.Spec.LeaseTransitions != 1 {
		t.Errorf("%s has it, after %d transitions; want %s, 1", *lease.Spec.HolderIdentity,
			*lease.Spec.LeaseTransitions, second)
	}
}

// TestDiscovery checks clients that discover the kinds, cache them on disk, and find a kind by any of its names.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	kept, err := disk.NewCachedDiscoveryClientForConfig(config, t.TempDir(), t.TempDir(), time.Hour)
	must(t, err)
	groups, lists, err := kept.ServerGroupsAndResources()
	must(t, err)
	if len(groups) < 20 || len(lists) < 20 {
		t.Errorf("%d groups, %d lists", len(groups), len(lists))
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(kept), kept,
		func(s string) { t.Error(s) })
	for name, want := range map[string]string{
		"deploy": "apps/v1, Resource=deployments", "po": "/v1, Resource=pods",
		"ct":      "stable.example.com/v1, Resource=crontabs",
		"crontab": "stable.example.com/v1, Resource=crontabs",
		"hpa":     "autoscaling/v2, Resource=horizontalpodautoscalers",
		"events":  "/v1, Resource=events", "crd": "apiextensions.k8s.io/v1, Resource=customresourcedefinitions",
	} {
		got, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: name})
		if err != nil || got.String() != want {
			t.Errorf("%s is %v (%v), want %s", name, got, err, want)
		}
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "stable.example.com", Kind: "CronTab"})
	must(t, err)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Errorf("%+v", mapping)
	}
	paths, err := kept.OpenAPIV3().Paths()
	must(t, err)
	document, err := paths["apis/stable.example.com/v1"].Schema("application/json")
	must(t, err)
	if !strings.Contains(string(document), "com.example.stable.v1.CronTab") {
		t.Errorf("the document of CronTab: %.200s", document)
	}
	v2, err := kept.OpenAPISchema() // protobuf
	must(t, err)
	if len(v2.Definitions.AdditionalProperties) < 500 {
		t.Errorf("%d definitions", len(v2.Definitions.AdditionalProperties))
	}

	_, err = builtins(t, config).CoreV1().ConfigMaps("default").Create(ctx, configMap("built"), metav1.CreateOptions{})
	must(t, err)
	flags := genericclioptions.NewConfigFlags(false)
	flags.WithWrapConfigFn(func(*rest.Config) *rest.Config { return rest.CopyConfig(config) })
	flags.APIServer = &config.Host
	infos, err := resource.NewBuilder(
		flags).Unstructured().NamespaceParam("default").DefaultNamespace().ResourceNames("cm",
		"built").ResourceNames("ns", "default").
		ContinueOnError().Latest().Flatten().Do().Infos()
	must(t, err)
	if len(infos) != 2 || infos[0].Mapping.GroupVersionKind.Kind != "ConfigMap" || infos[1].Name != "default" {
		t.Errorf("%v", infos)
	}
	w, err := infos[0].Watch(infos[0].ResourceVersion)
	must(t, err)
	w.Stop()
}

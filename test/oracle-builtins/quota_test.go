package oraclebuiltins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	runtimes "runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	kubequota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/quota"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// TestQuotaMatchesUpstream fills namespaces with random objects and quotas, and compares the usage and the allowed
// writes with Kubernetes' evaluators and admission. QUOTAS is the number of namespaces.
func TestQuotaMatchesUpstream(t *testing.T) {
	t.Parallel()
	n := 60
	if s := os.Getenv("QUOTAS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	var spaces []*quotaSpace
	var all []runtime.Object
	for _, class := range []struct{ name, extended string }{{"fast", "x.io/gpu"}, {"slow", ""}} {
		c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class.name}}
		if class.extended != "" {
			c.Spec.ExtendedResourceName = &class.extended
		}
		all = append(all, c)
	}
	for i := range n {
		s := newQuotaSpace(rand.New(rand.NewPCG(uint64(i), 36)), fmt.Sprintf("ns-%d", i))
		spaces = append(spaces, s)
		all = append(all, s.objects...)
	}
	theirs := newTheirQuotas(t, all)
	for _, s := range spaces {
		for _, q := range s.quotas {
			theirs.fill(t, s.random, q)
			all = append(all, q)
		}
	}
	limited := []configuration.Limited{
		{Resource: "pods", MatchContains: []string{"memory"}},
		{Group: "resource.k8s.io", Resource: "resourceclaims", MatchContains: []string{"slow"}},
		{Resource: "pods", MatchScopes: []corev1.ScopedResourceSelectorRequirement{{
			ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn,
			Values: []string{"gold"},
		}}},
	}
	var theirLimited []resourcequotaapi.LimitedResource
	for _, l := range limited {
		theirLimited = append(theirLimited, resourcequotaapi.LimitedResource{
			APIGroup: l.Group, Resource: l.Resource, MatchContains: l.MatchContains, MatchScopes: l.MatchScopes,
		})
	}
	view, kindsCatalog := quotaView(t, all)
	free, strict := quota.NewPlugin(view, kindsCatalog, nil), quota.NewPlugin(view, kindsCatalog, limited)
	counts := map[string]int{}
	for _, s := range spaces {
		for _, q := range s.quotas {
			want := theirs.used(t, q)
			if got := free.Used(q); !kubequota.Equals(got, want) {
				t.Errorf("%s/%s: used %s, want %s", q.Namespace, q.Name, show(got), show(want))
			}
		}
		for range 20 {
			w := s.write()
			for _, mode := range []struct {
				ours   *quota.Plugin
				theirs []resourcequotaapi.LimitedResource
			}{{free, nil}, {strict, theirLimited}} {
				want := theirs.ask(t, s, w, mode.theirs)
				err := mode.ours.Validate(t.Context(), w.ours(t, kindsCatalog))
				got := ""
				if err != nil {
					got = fmt.Sprintf("%v: %v", apierrors.IsForbidden(err), err)
				}
				if got != want {
					t.Errorf("%s: %s %s\ngot  %s\nwant %s\n%s", s.name, w.operation, w.resource, got, want,
						show(w.obj))
				}
				counts[kindOfAnswer(want)]++
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Log(counts)
	for _, answer := range []string{"", "exceeded quota", "failed quota", "status unknown", "insufficient quota to consume",
		"insufficient quota to match"} {
		if counts[answer] == 0 {
			t.Errorf("no write was answered with %q", answer)
		}
	}
}

func show(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

func kindOfAnswer(text string) string {
	for _, part := range []string{"exceeded quota", "failed quota", "status unknown", "insufficient quota to consume",
		"insufficient quota to match"} {
		if strings.Contains(text, part) {
			return part
		}
	}
	return text
}

// quotaSpace is a namespace.
type quotaSpace struct {
	random  *rand.Rand
	name    string
	objects []runtime.Object
	quotas  []*corev1.ResourceQuota
	made    int
}

func newQuotaSpace(r *rand.Rand, name string) *quotaSpace {
	s := &quotaSpace{random: r, name: name}
	for range r.IntN(12) {
		s.objects = append(s.objects, s.object())
	}
	for i := range 1 + r.IntN(3) {
		s.quotas = append(s.quotas, s.quota(fmt.Sprintf("q%d", i)))
	}
	return s
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (s *quotaSpace) some(names ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range names {
		if s.random.IntN(3) == 0 {
			out[corev1.ResourceName(name)] = resource.MustParse(pick(s.random, "0", "1", "2", "500m", "1Gi", "3k"))
		}
	}
	return out
}

func (s *quotaSpace) meta() metav1.ObjectMeta {
	s.made++
	name := fmt.Sprintf("o%d", s.made)
	return metav1.ObjectMeta{
		Name: name, Namespace: s.name, UID: types.UID(s.name + name), ResourceVersion: "1",
		CreationTimestamp: metav1.NewTime(time.Unix(1e9+int64(s.random.IntN(2)), 0)),
	}
}

func (s *quotaSpace) object() runtime.Object {
	switch s.random.IntN(8) {
	case 0:
		return &corev1.ConfigMap{ObjectMeta: s.meta()}
	case 1:
		return s.service()
	case 2, 3:
		return s.claim()
	case 4:
		return s.deviceClaim()
	}
	return s.pod()
}

func (s *quotaSpace) pod() *corev1.Pod {
	r := s.random
	names := []string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "x.io/gpu", "requests.x.io/odd",
		resourcev1.ResourceDeviceClassPrefix + "fast", "kubernetes.io/native"}
	container := func(name string) corev1.Container {
		c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{
			Requests: s.some(names...), Limits: s.some(names...),
		}}
		if r.IntN(2) == 0 {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		return c
	}
	p := &corev1.Pod{ObjectMeta: s.meta(), Spec: corev1.PodSpec{
		Containers: []corev1.Container{container("a")}, PriorityClassName: pick(r, "", "", "gold", "tin"),
	}}
	p.Spec.Containers[0].RestartPolicy = nil
	if r.IntN(3) == 0 {
		p.Spec.InitContainers = []corev1.Container{container("b"), container("c")}
	}
	if r.IntN(4) == 0 {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: s.some("cpu", "memory"), Limits: s.some("cpu")}
	}
	if r.IntN(4) == 0 {
		p.Spec.ActiveDeadlineSeconds = pick(r, new(int64), nil)
	}
	if r.IntN(4) == 0 {
		p.Spec.Overhead = s.some("cpu", "memory")
	}
	p.Status.Phase = pick(r, "", corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed)
	if r.IntN(6) == 0 {
		grace := int64(30)
		when := metav1.NewTime(time.Now().Add(pick(r, -time.Hour, time.Hour)).Truncate(time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &when, &grace
	}
	if r.IntN(4) == 0 {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: s.some("cpu", "memory"),
			Resources: &corev1.ResourceRequirements{Requests: s.some("cpu", "memory"), Limits: s.some("cpu")}}}
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodResizePending, Status: "True", Reason: pick(r, corev1.PodReasonInfeasible, "Deferred"),
		}}
	}
	if r.IntN(4) == 0 {
		term := corev1.PodAffinityTerm{Namespaces: pick(r, nil, []string{"x"})}
		if r.IntN(2) == 0 {
			term.NamespaceSelector = &metav1.LabelSelector{}
		}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: term}},
		}}
	}
	return p
}

func (s *quotaSpace) service() *corev1.Service {
	v := &corev1.Service{ObjectMeta: s.meta()}
	v.Spec.Type = pick(s.random, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer)
	for i := range s.random.IntN(3) {
		v.Spec.Ports = append(v.Spec.Ports,
			corev1.ServicePort{Port: int32(i + 1), NodePort: pick[int32](s.random, 0, 30000)})
	}
	v.Spec.AllocateLoadBalancerNodePorts = pick(s.random, nil, new(bool))
	return v
}

func (s *quotaSpace) claim() *corev1.PersistentVolumeClaim {
	r := s.random
	class := func() *string { return pick(r, nil, new(string), ptrTo("gold"), ptrTo("tin")) }
	c := &corev1.PersistentVolumeClaim{ObjectMeta: s.meta()}
	c.Spec.StorageClassName, c.Spec.VolumeAttributesClassName = class(), class()
	c.Spec.Resources.Requests = s.some("storage")
	c.Status.AllocatedResources = s.some("storage")
	c.Status.CurrentVolumeAttributesClassName = class()
	if r.IntN(4) == 0 {
		c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: pick(r, "", "gold")}
	}
	if r.IntN(4) == 0 {
		c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: pick(r, "", "tin")}
	}
	return c
}

func ptrTo[T any](v T) *T { return &v }

func (s *quotaSpace) deviceClaim() *resourcev1.ResourceClaim {
	r := s.random
	c := &resourcev1.ResourceClaim{ObjectMeta: s.meta()}
	mode := func() resourcev1.DeviceAllocationMode {
		return pick(r, resourcev1.DeviceAllocationModeExactCount, resourcev1.DeviceAllocationModeAll, "Newer")
	}
	class := func() string { return pick(r, "fast", "slow", "none") }
	for range r.IntN(3) {
		request := resourcev1.DeviceRequest{Name: "r"}
		if r.IntN(2) == 0 {
			request.Exactly = &resourcev1.ExactDeviceRequest{
				DeviceClassName: class(), AllocationMode: mode(), Count: int64(r.IntN(3)),
			}
		}
		for range r.IntN(3) {
			request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
				DeviceClassName: class(), AllocationMode: mode(), Count: int64(r.IntN(3)),
			})
		}
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, request)
	}
	for _, o := range s.objects {
		pod, ok := o.(*corev1.Pod)
		if !ok || r.IntN(2) == 0 {
			continue
		}
		c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: pick(r, "true", "true", "false")}
		c.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptrTo(true),
		}}
		if r.IntN(3) == 0 && pod.Status.ExtendedResourceClaimStatus == nil {
			pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: pick(r, c.Name, "another"),
			}
		}
		break
	}
	return c
}

func (s *quotaSpace) quota(name string) *corev1.ResourceQuota {
	r := s.random
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name}}
	q.Spec.Hard = corev1.ResourceList{}
	for _, name := range []string{
		"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "ephemeral-storage",
		"requests.ephemeral-storage", "limits.ephemeral-storage", "pods", "count/pods", "hugepages-2Mi",
		"requests.hugepages-2Mi", "requests.x.io/gpu", "requests.y.io/none", "x.io/gpu",
		corev1.ResourceImplicitExtendedClaimsPerClass + "fast", corev1.ResourceImplicitExtendedClaimsPerClass + "none",
		"fast" + corev1.ResourceClaimsPerClass, "slow" + corev1.ResourceClaimsPerClass,
		"count/resourceclaims.resource.k8s.io", "persistentvolumeclaims", "requests.storage",
		"gold.storageclass.storage.k8s.io/requests.storage", "tin.storageclass.storage.k8s.io/persistentvolumeclaims",
		"count/persistentvolumeclaims", "services", "services.nodeports", "services.loadbalancers", "count/services",
		"configmaps", "count/configmaps", "unheard",
	} {
		if r.IntN(4) == 0 {
			q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(pick(r, "1", "3", "5", "4Gi", "100Gi", "10"))
		}
	}
	if r.IntN(3) == 0 {
		q.Spec.Scopes = append(q.Spec.Scopes, pick(r, corev1.ResourceQuotaScopeTerminating,
			corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
			corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass,
			corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ResourceQuotaScopeVolumeAttributesClass))
	}
	if r.IntN(3) == 0 {
		e := corev1.ScopedResourceSelectorRequirement{
			ScopeName: pick(r, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass),
			Operator: pick(r, corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn, corev1.ScopeSelectorOpExists,
				corev1.ScopeSelectorOpDoesNotExist),
		}
		if e.Operator == corev1.ScopeSelectorOpIn || e.Operator == corev1.ScopeSelectorOpNotIn {
			e.Values = []string{"gold"}
		}
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{e}}
	}
	return q
}

// quotaWrite is a write to check.
type quotaWrite struct {
	operation   admission.Operation
	resource    schema.GroupVersionResource
	subresource string
	kind        string
	obj, old    runtime.Object
}

func (s *quotaSpace) write() quotaWrite {
	w := quotaWrite{operation: pick(s.random, admission.Create, admission.Update), obj: s.object()}
	switch w.obj.(type) {
	case *corev1.Pod:
		w.kind, w.resource = "Pod", corev1.SchemeGroupVersion.WithResource("pods")
		w.old, w.subresource = s.pod(), pick(s.random, "", "", "resize", "status")
	case *corev1.PersistentVolumeClaim:
		w.kind, w.resource = "PersistentVolumeClaim", corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
		w.old, w.subresource = s.claim(), pick(s.random, "", "", "status")
	case *corev1.Service:
		w.kind, w.resource = "Service", corev1.SchemeGroupVersion.WithResource("services")
		w.old = s.service()
	case *corev1.ConfigMap:
		w.kind, w.resource = "ConfigMap", corev1.SchemeGroupVersion.WithResource("configmaps")
		w.old = w.obj
	default:
		w.kind, w.resource = "ResourceClaim", resourcev1.SchemeGroupVersion.WithResource("resourceclaims")
		w.old = s.deviceClaim()
	}
	if w.operation == admission.Create {
		w.old, w.subresource = nil, ""
	}
	return w
}

func (w quotaWrite) ours(t *testing.T, c *catalog.Catalog) *admit.Attributes {
	t.Helper()
	r := c.Snapshot().Resource(w.resource.Group, w.resource.Resource)
	a := &admit.Attributes{
		Operation: admit.Operation(w.operation),
		Target:    admit.Target{Resource: r, Version: r.Storage, Subresource: w.subresource},
		Request:   admit.Request{DryRun: true, Warn: func(string) {}},
		Object:    decodedObject(t, w.obj),
	}
	if w.old != nil {
		a.Old = decodedObject(t, w.old)
	}
	a.Namespace, a.Name = catalog.Text(a.Object, "metadata", "namespace"), catalog.Text(a.Object, "metadata", "name")
	return a
}

func decodedObject(t *testing.T, obj runtime.Object) admit.Object {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(admit.Object)
}

// theirQuotas are Kubernetes' evaluators.
type theirQuotas struct{ registry kubequota.Registry }

func newTheirQuotas(t *testing.T, objects []runtime.Object) *theirQuotas {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
	lister := generic.ListerFuncForResourceFunc(factory.ForResource)
	config, err := install.NewQuotaConfigurationForControllers(lister, factory)
	if err != nil {
		t.Fatal(err)
	}
	registry := generic.NewRegistry(config.Evaluators())
	for _, resource := range []string{"pods", "services", "persistentvolumeclaims", "configmaps", "secrets",
		"replicationcontrollers", "resourcequotas"} {
		if _, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource(resource)); err != nil {
			t.Fatal(err)
		}
		_, _ = lister(corev1.SchemeGroupVersion.WithResource(resource))
	}
	_, _ = lister(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"))
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	theirs := &theirQuotas{registry}
	theirs.awaitClasses(t)
	return theirs
}

// awaitClasses waits until the evaluators have the extended resource of the class "fast": a handler adds it, and the
// sync of the informers does not wait for the handler.
func (q *theirQuotas) awaitClasses(t *testing.T) {
	t.Helper()
	claim := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "a", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "fast", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		}}},
	}}}
	claims := q.registry.Get(resourcev1.Resource("resourceclaims"))
	for limit := time.Now().Add(time.Minute); ; runtimes.Gosched() {
		usage, err := claims.Usage(claim)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := usage["requests.x.io/gpu"]; known {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the classes are not known: %v", usage)
		}
	}
}

func (q *theirQuotas) used(t *testing.T, of *corev1.ResourceQuota) corev1.ResourceList {
	t.Helper()
	used, err := kubequota.CalculateUsage(of.Namespace, of.Spec.Scopes, of.Spec.Hard, q.registry, of.Spec.ScopeSelector)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// fill gives a quota a status, sometimes with a missing resource.
func (q *theirQuotas) fill(t *testing.T, r *rand.Rand, of *corev1.ResourceQuota) {
	t.Helper()
	of.Status = corev1.ResourceQuotaStatus{Hard: of.Spec.Hard, Used: q.used(t, of)}
	if names := kubequota.ResourceNames(of.Status.Used); r.IntN(8) == 0 && len(names) > 0 {
		delete(of.Status.Used, slices.Min(names))
	}
}

// ask returns Kubernetes' decision about a write: "" for yes, else whether it is forbidden, and the reason.
func (q *theirQuotas) ask(
	t *testing.T, s *quotaSpace, w quotaWrite, limited []resourcequotaapi.LimitedResource,
) string {
	t.Helper()
	var list []corev1.ResourceQuota
	for _, quota := range s.quotas {
		list = append(list, *quota.DeepCopy())
	}
	name := catalog.Text(decodedObject(t, w.obj), "metadata", "name")
	var old runtime.Object
	if w.old != nil {
		old = w.old.DeepCopyObject()
	}
	a := admission.NewAttributesRecord(w.obj.DeepCopyObject(), old, w.resource.GroupVersion().WithKind(w.kind), s.name,
		name, w.resource, w.subresource, w.operation, nil, true, nil)
	e := q.registry.Get(w.resource.GroupResource())
	if e == nil {
		e = generic.NewObjectCountEvaluator(w.resource.GroupResource(), nil, "")
	}
	_, err := resourcequota.CheckRequest(list, a, e, limited)
	if err == nil {
		return ""
	}
	var status *apierrors.StatusError
	return fmt.Sprintf("%v: %v", errors.As(err, &status) && apierrors.IsForbidden(err), err)
}

// quotaView returns a view of the objects, and the kinds.
func quotaView(t *testing.T, objects []runtime.Object) (*watchcache.View, *catalog.Catalog) {
	t.Helper()
	s, err := store.Open(t.Context(),
		store.Config{Prefix: "/registry", Etcd: embedded.Config{Dir: t.TempDir(), NoSync: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	prefixes := map[string]string{
		"*v1.Pod": "pods", "*v1.Service": "services/specs", "*v1.PersistentVolumeClaim": "persistentvolumeclaims",
		"*v1.ResourceClaim": "resourceclaims", "*v1.ConfigMap": "configmaps", "*v1.ResourceQuota": "resourcequotas",
		"*v1.DeviceClass": "deviceclasses",
	}
	for _, o := range objects {
		obj := decodedObject(t, o)
		key := prefixes[fmt.Sprintf("%T", o)]
		if ns := catalog.Text(obj, "metadata", "namespace"); ns != "" {
			key += "/" + ns
		}
		key += "/" + catalog.Text(obj, "metadata", "name")
		if _, err := s.Create(t.Context(), key, codec.AppendJSON(nil, obj)); err != nil {
			t.Fatal(key, err)
		}
	}
	view := watchcache.New(s, watchcache.Options{})
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = view.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return view, catalog.New(kinds.Resources()...)
}

package oraclebuiltins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	flowcontrolbootstrap "k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/client-go/kubernetes/fake"
	listers "k8s.io/client-go/listers/flowcontrol/v1"
	"k8s.io/client-go/tools/cache"
	flowcontrolapisv1 "k8s.io/kubernetes/pkg/apis/flowcontrol/v1"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/ensurer"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/fairness"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// kubeEnsures keeps objects of one kind as Kubernetes' server does.
func kubeEnsures[T interface {
	comparable
	metav1.Object
	runtime.Object
}](ctx context.Context, ops ensurer.ObjectOps[T], suggested, mandatory []T) error {
	return errors.Join(
		ensurer.EnsureConfigurations(ctx, ops, suggested, ensurer.NewSuggestedEnsureStrategy[T]()),
		ensurer.EnsureConfigurations(ctx, ops, mandatory, ensurer.NewMandatoryEnsureStrategy[T]()),
		ensurer.RemoveUnwantedObjects(ctx, ops, slices.Concat(mandatory, suggested)))
}

// fairServer is a server with the objects of priority and fairness, which it restores on demand.
type fairServer struct{ *parttest.Server }

const (
	schemasPrefix = "flowschemas"
	levelsPrefix  = "prioritylevelconfigurations"
)

func flowcontrolResource(prefix string) catalog.GroupResource {
	return catalog.GroupResource{Group: flowcontrolv1.GroupName, Resource: prefix}
}

// TestKeepsFlowcontrolObjects lets clients delete, change, annotate and add objects of priority and fairness at random.
// Then Kubernetes' server and ours restore the objects, and the test compares them.
func TestKeepsFlowcontrolObjects(t *testing.T) {
	t.Parallel()
	part := fairness.Part()
	s := fairServer{parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: etcdtest.Config(t)}), part)}
	keep := func() {
		t.Helper()
		s.CatchUp()
		if err := part.Keep(t.Context(), s.Host); err != nil {
			t.Fatal(err)
		}
		s.CatchUp()
	}
	keep()
	restored, left := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		for range 1 + r.IntN(12) {
			s.disturb(r)
		}
		s.CatchUp()
		before := s.objects()
		want := kubeKeeps(s)
		keep()
		got := s.objects()
		for _, key := range slices.Sorted(maps.Keys(union(want, got))) {
			if want[key] != got[key] {
				t.Errorf("seed %d: %s\nwas  %s\ngot  %s\nwant %s", seed, key, before[key], got[key], want[key])
			}
			switch {
			case before[key] != got[key]:
				restored++
			case !isBootstrap[key]:
				left++
			}
		}
		revision := s.View.Revision()
		if keep(); s.View.Revision() != revision {
			t.Errorf("seed %d: what is right is written again", seed)
		}
	}
	if restored == 0 || left == 0 {
		t.Errorf("%d objects were put right, %d are users'", restored, left)
	}
}

// isBootstrap has the keys of the objects that every server has.
var isBootstrap = func() map[string]bool {
	out := map[string]bool{}
	for _, f := range slices.Concat(flowcontrolbootstrap.MandatoryFlowSchemas,
		flowcontrolbootstrap.SuggestedFlowSchemas) {
		out[schemasPrefix+"/"+f.Name] = true
	}
	for _, p := range slices.Concat(flowcontrolbootstrap.MandatoryPriorityLevelConfigurations,
		flowcontrolbootstrap.SuggestedPriorityLevelConfigurations) {
		out[levelsPrefix+"/"+p.Name] = true
	}
	return out
}()

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// essence is the compared part of an object.
func essence(meta *metav1.ObjectMeta, spec any) string {
	out, err := json.Marshal([]any{meta.Annotations, spec})
	if err != nil {
		panic(err)
	}
	return string(out)
}

func schemaEssence(f *flowcontrolv1.FlowSchema) string { return essence(&f.ObjectMeta, f.Spec) }
func levelEssence(p *flowcontrolv1.PriorityLevelConfiguration) string {
	return essence(&p.ObjectMeta, p.Spec)
}

// decoded calls f with each object.
func decoded[T any](s fairServer, prefix string, f func(*T)) {
	s.View.Collection(prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		obj := new(T)
		if err := json.Unmarshal(e.JSON(), obj); err != nil {
			s.Fatal(err)
		}
		f(obj)
		return true
	})
}

// objects returns the current objects.
func (s fairServer) objects() map[string]string {
	out := map[string]string{}
	decoded(s, schemasPrefix, func(f *flowcontrolv1.FlowSchema) { out[schemasPrefix+"/"+f.Name] = schemaEssence(f) })
	decoded(s, levelsPrefix, func(p *flowcontrolv1.PriorityLevelConfiguration) {
		out[levelsPrefix+"/"+p.Name] = levelEssence(p)
	})
	return out
}

// disturb makes a client's random change. An invalid change has no effect.
func (s fairServer) disturb(r *rand.Rand) {
	s.Helper()
	s.CatchUp()
	prefix := []string{schemasPrefix, levelsPrefix}[r.IntN(2)]
	names := []string{"foreign", "other"}
	for key := range isBootstrap {
		if name, ok := strings.CutPrefix(key, prefix+"/"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	name := names[r.IntN(len(names))]
	annotation := []string{"true", "false", "T", "0", "odd", ""}[r.IntN(6)]
	switch there := s.View.Collection(prefix).Snapshot().Get("", name) != nil; {
	case !there:
		s.add(prefix, name, annotation)
	case r.IntN(4) == 0:
		s.Delete(flowcontrolResource(prefix), "", name)
	default:
		choice := r.IntN(3) // bits: the spec, the annotation
		_, err := s.Verbs.Update(s.Context(), s.Call(flowcontrolResource(prefix), "", name), metav1.UpdateOptions{},
			func(obj object.Object) (object.Object, error) {
				if choice != 1 {
					respecify(r, obj["spec"].(object.Object))
				}
				if choice != 0 {
					object.Meta(obj)["annotations"] = annotations(annotation)
				}
				return obj, nil
			})
		if err != nil && !apierrors.IsInvalid(err) {
			s.Fatal(err)
		}
	}
}

func annotations(value string) object.Object {
	out := object.Object{"mine": "stays"}
	if value != "" {
		out[flowcontrolv1.AutoUpdateAnnotationKey] = value
	}
	return out
}

// respecify changes a spec. The mandatory schemas and the level catch-all do not allow it.
func respecify(r *rand.Rand, spec object.Object) {
	if _, ok := spec["matchingPrecedence"]; ok {
		spec["matchingPrecedence"] = int64(100 + r.IntN(3))
		return
	}
	for _, of := range []string{"limited", "exempt"} {
		if m, ok := spec[of].(object.Object); ok {
			m["nominalConcurrencyShares"], m["lendablePercent"] = int64(1+r.IntN(3)), int64(r.IntN(3))
		}
	}
}

// add creates a missing object.
func (s fairServer) add(prefix, name, annotation string) {
	s.Helper()
	if isBootstrap[prefix+"/"+name] {
		return // deleted objects; a client can make only few of them
	}
	meta, err := json.Marshal(object.Object{"name": name, "annotations": annotations(annotation)})
	if err != nil {
		s.Fatal(err)
	}
	spec := `{"matchingPrecedence":7000,"priorityLevelConfiguration":{"name":"exempt"}}`
	if prefix == levelsPrefix {
		spec = `{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}`
	}
	s.Create(flowcontrolResource(prefix), "", fmt.Sprintf(`{"metadata":%s,"spec":%s}`, meta, spec))
}

// kubeKeeps returns the objects after Kubernetes' server has restored them.
func kubeKeeps(s fairServer) map[string]string {
	s.Helper()
	var there []runtime.Object
	indexers := map[string]cache.Indexer{}
	for _, prefix := range []string{schemasPrefix, levelsPrefix} {
		indexers[prefix] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	}
	keep := func(prefix string, obj runtime.Object) {
		there = append(there, obj)
		if err := indexers[prefix].Add(obj); err != nil {
			s.Fatal(err)
		}
	}
	decoded(s, schemasPrefix, func(f *flowcontrolv1.FlowSchema) { keep(schemasPrefix, f) })
	decoded(s, levelsPrefix, func(p *flowcontrolv1.PriorityLevelConfiguration) { keep(levelsPrefix, p) })
	client := fake.NewClientset(there...).FlowcontrolV1()
	if err := errors.Join(
		kubeEnsures(s.Context(), ensurer.NewPriorityLevelConfigurationOps(client.PriorityLevelConfigurations(),
			listers.NewPriorityLevelConfigurationLister(indexers[levelsPrefix])),
			flowcontrolbootstrap.SuggestedPriorityLevelConfigurations,
			flowcontrolbootstrap.MandatoryPriorityLevelConfigurations),
		kubeEnsures(s.Context(), ensurer.NewFlowSchemaOps(client.FlowSchemas(),
			listers.NewFlowSchemaLister(indexers[schemasPrefix])),
			flowcontrolbootstrap.SuggestedFlowSchemas, flowcontrolbootstrap.MandatoryFlowSchemas)); err != nil {
		s.Fatal(err)
	}
	schemas, err := client.FlowSchemas().List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	levels, err := client.PriorityLevelConfigurations().List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	out := map[string]string{}
	for i := range schemas.Items {
		f := &schemas.Items[i]
		flowcontrolapisv1.SetObjectDefaults_FlowSchema(f)
		out[schemasPrefix+"/"+f.Name] = schemaEssence(f)
	}
	for i := range levels.Items {
		p := &levels.Items[i]
		flowcontrolapisv1.SetObjectDefaults_PriorityLevelConfiguration(p)
		out[levelsPrefix+"/"+p.Name] = levelEssence(p)
	}
	return out
}

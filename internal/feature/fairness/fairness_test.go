package fairness

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// objects is how many every server has: eight levels, eleven schemas.
const objects = 8 + 11

// still is a server that does not run the reconciler by itself.
type still struct {
	*parttest.Server
	reconciler
}

func start(t *testing.T) *still {
	t.Helper()
	return &still{
		Server: parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}), Part()),
	}
}

// keep has the server look after its objects once, and returns how many it has written.
func (s *still) keep() int {
	s.Helper()
	s.CatchUp()
	before := s.versions()
	if err := s.reconciler.keep(s.Context(), s.Host); err != nil {
		s.Fatal(err)
	}
	s.CatchUp()
	after, n := s.versions(), 0
	for key, revision := range after {
		if before[key] != revision {
			n++
		}
	}
	for key := range before {
		if _, there := after[key]; !there {
			n++
		}
	}
	return n
}

// versions returns the revision of each object.
func (s *still) versions() map[string]int64 {
	out := map[string]int64{}
	for _, prefix := range []string{schemas, levels} {
		s.View.Collection(prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			out[prefix+"/"+e.Name] = e.Revision
			return true
		})
	}
	return out
}

// change changes an object as a client.
func (s *still) change(prefix, name string, f func(object.Object)) {
	s.Helper()
	_, err := s.Verbs.Update(s.Context(), s.Call(resource(prefix), "", name), metav1.UpdateOptions{},
		func(obj object.Object) (object.Object, error) {
			f(obj)
			return obj, nil
		})
	if err != nil {
		s.Fatal(err)
	}
}

// annotate sets the annotation that decides whether the server or the user owns an object; "" removes it.
func annotate(value string) func(object.Object) {
	return func(obj object.Object) {
		meta := object.Meta(obj)
		if value == "" {
			delete(meta, "annotations")
			return
		}
		meta["annotations"] = object.Object{flowcontrolv1.AutoUpdateAnnotationKey: value, "mine": "stays"}
	}
}

// precede changes the spec of a schema.
func precede(n int64) func(object.Object) {
	return func(obj object.Object) { obj["spec"].(object.Object)["matchingPrecedence"] = n }
}

func both(fs ...func(object.Object)) func(object.Object) {
	return func(obj object.Object) {
		for _, f := range fs {
			f(obj)
		}
	}
}

func (s *still) schema(name string) *flowcontrolv1.FlowSchema {
	s.Helper()
	return read[flowcontrolv1.FlowSchema](s, schemas, name)
}

func read[T any](s *still, prefix, name string) *T {
	s.Helper()
	out := new(T)
	if err := json.Unmarshal([]byte(s.Stored(prefix, "", name)), out); err != nil {
		s.Fatalf("%s %s: %v", prefix, name, err)
	}
	return out
}

// TestObjectsComeBack checks that the default objects are created once, and recreated after a deletion.
func TestObjectsComeBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	if n := s.keep(); n != objects {
		t.Errorf("%d objects made", n)
	}
	if n := s.keep(); n != 0 {
		t.Errorf("%d objects written although nothing has changed", n)
	}
	for prefix, names := range map[string][]string{schemas: {"exempt", "catch-all", "service-accounts", "probes"},
		levels: {"exempt", "catch-all", "workload-low", "leader-election"}} {
		for _, name := range names {
			s.Delete(resource(prefix), "", name)
		}
	}
	if n := s.keep(); n != 8 {
		t.Errorf("%d objects made again, want 8", n)
	}
	s.Has(s.Stored(schemas, "", "exempt"), `"manager":"api-priority-and-fairness-config-producer-v1"`,
		`"apf.kubernetes.io/autoupdate-spec":"true"`)
	if n := s.keep(); n != 0 {
		t.Errorf("%d objects written although nothing has changed", n)
	}
}

// TestChangedObjects checks that a user's change stays or is reverted, by the annotation and by whether the object is
// mandatory.
func TestChangedObjects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		change     func(object.Object)
		precedence int32 // of service-accounts, by default 9000
		annotation string
		writes     int
	}{
		{"the server's", precede(9001), 9000, "true", 1},
		{"the user's by its annotation", both(annotate("false"), precede(9001)), 9001, "false", 0},
		{"the user's, because it is changed and says nothing", both(annotate(""), precede(9001)), 9001, "false", 1},
		{"the user's, because it is changed and says what is no truth", both(annotate("maybe"), precede(9001)), 9001,
			"false", 1},
		{"the server's, in another spelling", both(annotate("T"), precede(9001)), 9000, "T", 1},
		{"the server's, because only its annotation has gone", annotate(""), 9000, "true", 1},
		{"the user's, and as it was", annotate("false"), 9000, "false", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.keep()
			s.change(schemas, "service-accounts", test.change)
			if n := s.keep(); n != test.writes {
				t.Errorf("%d objects written, want %d", n, test.writes)
			}
			f := s.schema("service-accounts")
			got := f.Annotations[flowcontrolv1.AutoUpdateAnnotationKey]
			if f.Spec.MatchingPrecedence != test.precedence || got != test.annotation {
				t.Errorf("precedence %d, annotation %q; want %d, %q", f.Spec.MatchingPrecedence, got, test.precedence,
					test.annotation)
			}
			if n := s.keep(); n != 0 {
				t.Errorf("%d objects written the second time", n)
			}
		})
	}
}

// TestMandatoryObjects checks that only the shares and lending of the exempt level are the user's, and no other field
// of a mandatory object, whatever its annotation. Other annotations stay.
func TestMandatoryObjects(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.keep()
	s.change(levels, "exempt", func(obj object.Object) {
		annotate("false")(obj)
		obj["spec"].(object.Object)["exempt"] = object.Object{
			"nominalConcurrencyShares": int64(7), "lendablePercent": int64(40)}
	})
	s.change(levels, "catch-all", annotate("false"))
	if n := s.keep(); n != 2 {
		t.Errorf("%d objects written, want 2", n)
	}
	exempt := read[flowcontrolv1.PriorityLevelConfiguration](s, levels, "exempt")
	if *exempt.Spec.Exempt.NominalConcurrencyShares != 7 || *exempt.Spec.Exempt.LendablePercent != 40 {
		t.Errorf("the exempt level's seats are not the user's: %+v", exempt.Spec.Exempt)
	}
	for _, name := range []string{"exempt", "catch-all"} {
		p := read[flowcontrolv1.PriorityLevelConfiguration](s, levels, name)
		if p.Annotations[flowcontrolv1.AutoUpdateAnnotationKey] != "true" || p.Annotations["mine"] != "stays" {
			t.Errorf("%s: annotations %v", name, p.Annotations)
		}
	}
}

// Objects of another version of the server go; a user's stay.
func TestUnknownObjects(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.keep()
	const spec = `"spec":{"matchingPrecedence":7000,"priorityLevelConfiguration":{"name":"exempt"}}`
	for name, value := range map[string]string{"old": "true", "kept": "false", "odd": "perhaps"} {
		s.Create(resource(schemas), "", fmt.Sprintf(
			`{"metadata":{"name":%q,"annotations":{%q:%q}},%s}`, name, flowcontrolv1.AutoUpdateAnnotationKey, value, spec))
		s.Create(resource(levels), "", fmt.Sprintf(
			`{"metadata":{"name":%q,"annotations":{%q:%q}},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}}`,
			name, flowcontrolv1.AutoUpdateAnnotationKey, value))
	}
	s.Create(resource(schemas), "", `{"metadata":{"name":"mine"},`+spec+`}`)
	if n := s.keep(); n != 2 {
		t.Errorf("%d objects written, want 2 deleted", n)
	}
	for name, there := range map[string]bool{"old": false, "kept": true, "odd": true} {
		for _, prefix := range []string{schemas, levels} {
			if got := s.Stored(prefix, "", name) != ""; got != there {
				t.Errorf("%s %s is there: %v", prefix, name, got)
			}
		}
	}
}

// TestReplicas runs three servers on one etcd that reconcile the objects concurrently. They create each once, agree
// about clients' changes, and write nothing without changes.
func TestReplicas(t *testing.T) {
	t.Parallel()
	etcd := memory.New()
	first := parttest.OpenStore(t, store.Config{Etcd: etcd.Shared()})
	all := []*still{{Server: parttest.Start(t, first, Part())}}
	for range 2 {
		st := parttest.OpenStore(t, store.Config{Etcd: etcd.Shared()})
		all = append(all, &still{Server: parttest.Start(t, st, Part())})
	}
	together := func() {
		var wg sync.WaitGroup
		for _, s := range all {
			wg.Go(func() {
				if err := s.reconciler.keep(s.Context(), s.Host); err != nil {
					s.Error(err)
				}
			})
		}
		wg.Wait()
		for _, s := range all {
			s.CatchUp()
		}
	}
	quiet := func(when string) {
		t.Helper()
		before := all[0].versions()
		together()
		for key, revision := range all[0].versions() {
			if before[key] != revision {
				t.Errorf("%s: %s is written again", when, key)
			}
		}
	}
	together()
	if n := len(all[1].versions()); n != objects {
		t.Errorf("%d objects", n)
	}
	for key, revision := range all[2].versions() {
		if e := all[0].versions()[key]; e != revision {
			t.Errorf("%s differs", key)
		}
	}
	quiet("after the start")
	for round := range 5 {
		for i, s := range all {
			name := []string{"service-accounts", "system-nodes", "probes"}[i]
			s.change(schemas, name, precede(int64(5000+10*round+i)))
			s.Delete(resource(levels), "", []string{"system", "node-high", "workload-low"}[i])
		}
		for _, s := range all {
			s.CatchUp()
		}
		together()
		together() // retries a conflicting update
		if n := len(all[1].versions()); n != objects {
			t.Errorf("%d objects after round %d", n, round)
		}
		quiet(fmt.Sprintf("round %d", round))
	}
}

// The condition Dangling follows the level, and leaves the conditions of others alone.
func TestCondition(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := &conditions{s.Host, map[string][]time.Time{}}
	dangling := func() (want flowcontrolv1.FlowSchemaCondition, others int) {
		t.Helper()
		if again := s.Does(c, "mine"); again != 0 {
			t.Errorf("looks again in %s", again)
		}
		for _, has := range s.schema("mine").Status.Conditions {
			if has.Type == flowcontrolv1.FlowSchemaConditionDangling {
				want = has
			} else {
				others++
			}
		}
		return want, others
	}
	if again := s.Does(c, "mine"); again != 0 { // it does not exist
		t.Errorf("looks again in %s at what is not there", again)
	}
	s.Create(resource(schemas), "", `{"metadata":{"name":"mine"},"spec":{"matchingPrecedence":7000,`+
		`"priorityLevelConfiguration":{"name":"one"}}}`)
	got, _ := dangling()
	want := flowcontrolv1.FlowSchemaCondition{
		Type: "Dangling", Status: "True", Reason: "NotFound", LastTransitionTime: metav1.NewTime(s.Time.Local()),
		Message: `This FlowSchema references the PriorityLevelConfiguration object named "one" but there is no such object`,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	at := s.versions()[schemas+"/mine"]
	s.Time = s.Time.Add(time.Hour)
	if dangling(); s.versions()[schemas+"/mine"] != at {
		t.Error("a condition that is right is written again")
	}
	call := s.Call(resource(schemas), "", "mine")
	call = call.Under("status")
	if _, err := s.Verbs.Update(t.Context(), call, metav1.UpdateOptions{},
		func(obj object.Object) (object.Object, error) {
			conditions := object.Map(obj, "status")["conditions"].([]any)
			obj["status"].(object.Object)["conditions"] = append(conditions, object.Object{
				"type": "Other", "status": "True", "reason": "r", "message": "m",
				"lastTransitionTime": "2026-01-01T00:00:00Z",
			})
			return obj, nil
		}); err != nil {
		t.Fatal(err)
	}
	s.Create(resource(levels), "", `{"metadata":{"name":"one"},"spec":{"type":"Limited","limited":{`+
		`"limitResponse":{"type":"Reject"}}}}`)
	s.CatchUp()
	got, others := dangling()
	want.Status, want.Reason, want.LastTransitionTime = "False", "Found", metav1.NewTime(s.Time.Local())
	want.Message = `This FlowSchema references the PriorityLevelConfiguration object named "one" and it exists`
	if got != want || others != 1 {
		t.Errorf("got  %+v and %d others\nwant %+v", got, others, want)
	}
}

// TestTruce checks that a conflicting writer is answered six times a minute, then waited for.
func TestTruce(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := &conditions{s.Host, map[string][]time.Time{}}
	s.Create(resource(schemas), "", `{"metadata":{"name":"mine"},"spec":{"matchingPrecedence":7000,`+
		`"priorityLevelConfiguration":{"name":"one"}}}`)
	for i := range 7 {
		again := s.Does(c, "mine")
		if i < 6 && again != 0 || i == 6 && (again < truceLeast || again > truceLeast+truceMore) {
			t.Fatalf("write %d: looks again in %s", i, again)
		}
		call := s.Call(resource(schemas), "", "mine")
		call = call.Under("status")
		if _, err := s.Verbs.Update(t.Context(), call, metav1.UpdateOptions{},
			func(obj object.Object) (object.Object, error) {
				for _, each := range object.Map(obj, "status")["conditions"].([]any) {
					each.(object.Object)["status"] = "False"
				}
				return obj, nil
			}); err != nil {
			t.Fatal(err)
		}
		s.Time = s.Time.Add(time.Second)
	}
	s.Time = s.Time.Add(time.Minute)
	if again := s.Does(c, "mine"); again != 0 {
		t.Errorf("after a minute: looks again in %s", again)
	}
	if got := s.schema("mine").Status.Conditions[0].Status; got != "True" {
		t.Errorf("after a minute: %s", got)
	}
}

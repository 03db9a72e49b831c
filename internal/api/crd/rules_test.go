package crd

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

const cronTab = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
  uid: u-1
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab, shortNames: [ct]}
  versions:
  - name: v1beta1
    served: true
    deprecated: true
    schema: {openAPIV3Schema: {type: object, properties: {old: {type: string}}}}
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer, minimum: 1.50}}}}}}
    additionalPrinterColumns: [{name: Replicas, type: integer, jsonPath: .spec.replicas}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    selectableFields: [{jsonPath: .spec.replicas}]
`

func fromYAML(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object(t, raw)
}

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// create runs a definition through the rules like a POST.
func create(t testing.TB, obj map[string]any, s *catalog.Snapshot) map[string]any {
	t.Helper()
	rules := Rules()
	if unknown, err := rules.Decode(obj); err != nil || len(unknown) > 0 {
		t.Fatal(unknown, err)
	}
	rules.Default(obj)
	rules.PrepareCreate(obj, catalog.Env{Now: testNow, Snapshot: s})
	if errs := rules.Validate(t.Context(), obj); len(errs) > 0 {
		t.Fatal(errs)
	}
	return obj
}

// update runs a changed definition through the rules like a PUT.
func update(t testing.TB, obj, old map[string]any, subresource string) []string {
	t.Helper()
	rules := Rules()
	if _, err := rules.Decode(obj); err != nil {
		t.Fatal(err)
	}
	rules.Default(obj)
	rules.PrepareUpdate(obj, old, subresource, catalog.Env{Now: testNow.Add(time.Hour)})
	var texts []string
	for _, e := range rules.ValidateUpdate(t.Context(), obj, old, subresource) {
		texts = append(texts, e.Error())
	}
	return texts
}

func TestCreate(t *testing.T) {
	obj := create(t, fromYAML(t, cronTab), nil)
	want := `{"acceptedNames":{"kind":"CronTab","listKind":"CronTabList","plural":"crontabs","shortNames":["ct"],"singular":"crontab"},` +
		`"conditions":[{"lastTransitionTime":"2026-01-02T03:04:05Z","message":"no conflicts found","reason":"NoConflicts","status":"True","type":"NamesAccepted"},` +
		`{"lastTransitionTime":"2026-01-02T03:04:05Z","message":"the initial names have been accepted","reason":"InitialNamesAccepted","status":"True","type":"Established"}],` +
		`"storedVersions":["v1"]}`
	if got := string(encode(t, obj["status"])); got != want {
		t.Errorf("status\n got %s\nwant %s", got, want)
	}
	if g := dig(obj, "metadata", "generation"); g != int64(1) {
		t.Errorf("generation %v", g)
	}
	if s := dig(obj, "spec", "conversion", "strategy"); s != "None" {
		t.Errorf("conversion %v", s)
	}
}

func TestCreateConflict(t *testing.T) {
	first, err := Resource(mustDecode(t, create(t, fromYAML(t, cronTab), nil)), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer("crontabs", "cts", "kind: CronTab", "kind: Other", "shortNames: [ct]",
		"shortNames: [ct, o]").Replace(cronTab)
	def := mustDecode(t, create(t, fromYAML(t, other), catalog.New(first).Snapshot()))
	if got := formatConditions(
		def.Status.Conditions); got != `NamesAccepted=False/ShortNamesConflict/"ct" is already in use Established=False/NotAccepted/not all names are accepted` {
		t.Error(got)
	}
	r, err := Resource(def, 2, nil)
	if err != nil || r.Served || r.Kind != "Other" || len(r.ShortNames) > 0 {
		t.Errorf("%v %+v", err, r)
	}
}

func TestWarnings(t *testing.T) {
	obj := create(t,
		fromYAML(t,
			strings.ReplaceAll(cronTab, "old: {type: string}",
				"old: {type: string, format: nope, example: {format: x}}, n: {type: integer, format: float}, d: {type: string, format: date-time}")), nil)
	want := []string{`unrecognized format "float"`, `unrecognized format "nope"`}
	if got := Rules().Warnings(obj, nil, ""); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := Rules().Warnings(create(t, fromYAML(t, cronTab), nil), nil, ""); got != nil {
		t.Errorf("got %q", got)
	}
}

// TestSetWarnings checks the warnings about sets of other values than scalars: an update returns the new ones.
func TestSetWarnings(t *testing.T) {
	with := func(fields string) map[string]any {
		text := strings.ReplaceAll(cronTab, "old: {type: string}", "old: {type: string}, "+fields)
		return create(t, fromYAML(t, text), nil)
	}
	const (
		text    = "x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules"
		objects = "o: {type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic}}"
		lists   = "l: {type: array, x-kubernetes-list-type: set, items: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}}"
		scalars = "s: {type: array, x-kubernetes-list-type: set, items: {type: string}}"
	)
	aboutObjects, aboutLists := fmt.Sprintf(text, "object"), fmt.Sprintf(text, "array")
	for _, test := range []struct {
		obj, old map[string]any
		want     []string
	}{
		{with(scalars), nil, nil},
		{with(lists + ", " + objects), nil, []string{aboutLists, aboutObjects}},
		{with(lists + ", " + objects), with(objects), []string{aboutLists}},
		{with(objects), with(lists + ", " + objects), nil},
	} {
		if got := Rules().Warnings(test.obj, test.old, ""); !slices.Equal(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestUpdate(t *testing.T) {
	old := create(t, fromYAML(t, cronTab), nil)
	same := clone(old).(map[string]any)
	if errs := update(t, same, old, ""); errs != nil || !reflect.DeepEqual(same, old) {
		t.Errorf("no change: %v", errs)
	}

	changed := clone(old).(map[string]any)
	versions := dig(changed, "spec", "versions").([]any)
	v2 := clone(versions[1]).(map[string]any)
	v2["name"] = "v2"
	versions[1].(map[string]any)["storage"] = false
	changed["spec"].(map[string]any)["versions"] = append(versions, v2)
	changed["status"] = nil // a client cannot change it here
	if errs := update(t, changed, old, ""); errs != nil {
		t.Error(errs)
	}
	if got := string(encode(t, dig(changed, "status", "storedVersions"))); got != `["v1","v2"]` ||
		dig(changed, "metadata", "generation") != int64(2) {
		t.Errorf("stored %s, generation %v", got, dig(changed, "metadata", "generation"))
	}

	gone := clone(changed).(map[string]any)
	gone["spec"].(map[string]any)["versions"] = []any{v2}
	want := []string{
		`status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions`,
	}
	if errs := update(t, gone, changed, ""); !slices.Equal(errs, want) {
		t.Errorf("got %q", errs)
	}

	other := clone(old).(map[string]any)
	dig(other, "spec", "names").(map[string]any)["kind"] = "Other"
	other["spec"].(map[string]any)["scope"] = "Cluster"
	other["spec"].(map[string]any)["group"] = "b.example.com"
	want = []string{
		`spec.scope: Invalid value: "Cluster": field is immutable`,
		`spec.names.kind: Invalid value: "Other": field is immutable`,
		`spec.group: Invalid value: "b.example.com": field is immutable`,
	}
	if errs := update(t, other, old, ""); !slices.Equal(errs, want) {
		t.Errorf("got %q", errs)
	}
}

func TestUpdateStatus(t *testing.T) {
	old := create(t, fromYAML(t, cronTab), nil)
	obj := clone(old).(map[string]any)
	obj["spec"] = map[string]any{}
	dig(obj, "status").(map[string]any)["storedVersions"] = []any{"v7"}
	dig(obj, "status", "acceptedNames").(map[string]any)["plural"] = "A B"
	errs := update(t, obj, old, "status")
	if len(errs) != 1 || !strings.HasPrefix(errs[0], "status.acceptedNames.plural: Invalid value") {
		t.Errorf("got %q", errs)
	}
	if !reflect.DeepEqual(obj["spec"], old["spec"]) || dig(obj, "metadata", "generation") != int64(1) {
		t.Error("a status update changed more than the status")
	}
}

func TestDelete(t *testing.T) {
	rules := Rules()
	obj := create(t, fromYAML(t, cronTab), nil)
	if !rules.PrepareDelete(obj, catalog.Env{Now: testNow}) {
		t.Fatal("deleted at once")
	}
	condition := func() string {
		c := findCondition(mustDecode(t, obj).Status.Conditions, apiextensionsv1.Terminating)
		return fmt.Sprintf("%s/%s/%s %v", c.Status, c.Reason, c.Message, dig(obj, "metadata", "finalizers"))
	}
	finalizers := " [customresourcecleanup.apiextensions.k8s.io]"
	if got := condition(); got != "True/InstanceDeletionPending/CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"+finalizers {
		t.Error(got)
	}
	if r, err := Resource(mustDecode(t, obj), 3, nil); err != nil || !r.Served || !r.Terminating {
		t.Errorf("%v %+v", err, r)
	}
	if rules.PrepareDelete(obj, catalog.Env{Now: testNow}) {
		t.Error("a second deletion changes the definition again")
	}
	for _, step := range []struct {
		stage Deletion
		want  string
	}{
		{DeletionInProgress, "True/InstanceDeletionInProgress/CustomResource deletion is in progress" + finalizers},
		{DeletionFailed(errors.New("no")), "True/InstanceDeletionFailed/could not issue all deletes: no" + finalizers},
		{DeletionCompleted, "False/InstanceDeletionCompleted/removed all instances <nil>"},
	} {
		if !SetDeletion(obj, step.stage, testNow) || condition() != step.want {
			t.Errorf("got %s, want %s", condition(), step.want)
		}
		if SetDeletion(obj, step.stage, testNow.Add(time.Hour)) {
			t.Errorf("%s changes again", step.stage.reason)
		}
	}
	// Another finalizer may still hold the definition; its condition is already False.
	if r, err := Resource(mustDecode(t, obj), 4, nil); err != nil || !r.Terminating {
		t.Errorf("new objects may come to a definition that is being deleted: %v %+v", err, r)
	}
}

func TestResource(t *testing.T) {
	stored := encode(t, create(t, fromYAML(t, cronTab), nil))
	def, err := DecodeWithoutSchemas(stored)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Resource(def, 9, func() ([]byte, error) { return stored, nil })
	if err != nil {
		t.Fatal(err)
	}
	if r.Prefix != "stable.example.com/crontabs" || r.Singular != "crontab" || r.ListKind != "CronTabList" ||
		!r.Namespaced || !r.Served || r.Terminating ||
		r.Definition != (catalog.Definition{
			Name: "crontabs.stable.example.com", UID: "u-1", Generation: 1, Revision: 9,
		}) {
		t.Errorf("%+v", r)
	}
	if len(r.Versions) != 2 || r.Versions[0].Name != "v1" || r.Storage != r.Versions[0] {
		t.Fatalf("versions %+v", r.Versions)
	}
	v1, beta := r.Versions[0], r.Versions[1]
	if beta.Warning != "stable.example.com/v1beta1 CronTab is deprecated; use stable.example.com/v1 CronTab" ||
		v1.Warning != "" {
		t.Errorf("warnings %q %q", v1.Warning, beta.Warning)
	}
	if len(v1.Columns) != 1 || v1.Columns[0].JSONPath != ".spec.replicas" || v1.Scale == nil || !v1.Status ||
		beta.Status || !slices.Equal(v1.SelectableFields, []string{".spec.replicas"}) {
		t.Errorf("%+v", v1)
	}
	for v, field := range map[*catalog.Version]string{v1: "spec", beta: "old"} {
		s, err := v.Schema()
		if err != nil || s.Root().Properties[field] == nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

// TestSourceIsDropped checks that a resource holds no decoded schema, only its source.
func TestSourceIsDropped(t *testing.T) {
	stored := encode(t, create(t, fromYAML(t, cronTab), nil))
	def, _ := DecodeWithoutSchemas(stored)
	calls := 0
	r, err := Resource(def, 1, func() ([]byte, error) { calls++; return stored, nil })
	if err != nil || calls != 0 {
		t.Fatal(err, calls)
	}
	first, _ := r.Storage.Source()
	second, _ := r.Storage.Source()
	if calls != 2 || first == second {
		t.Errorf("%d calls", calls)
	}
}

func mustDecode(t testing.TB, obj map[string]any) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	def, err := Decode(obj)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// TestValidationEnds: once the time for a request is over, no further version and rule of a definition is looked at.
func TestValidationEnds(t *testing.T) {
	obj := create(t, fromYAML(t, cronTab), nil)
	for i, v := range dig(obj, "spec", "versions").([]any) { // equal schemas would be checked once
		v.(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "description": fmt.Sprint(i), "x-kubernetes-validations": []any{
				map[string]any{"rule": "nonsense"}, map[string]any{"rule": "nonsense"},
			},
		}}
	}
	nonsense := func(errs field.ErrorList) (n int) {
		for _, e := range errs {
			n += strings.Count(e.Detail, "undeclared reference")
		}
		return n
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v, calls := NewValidator(), 0
	check := v.CheckRules
	v.CheckRules = func(root *schema.Node, path *field.Path, c RuleCheck) field.ErrorList {
		calls++
		cancel() // during the check of the first schema
		return check(root, path, c)
	}
	if got := nonsense(v.until(ctx).validateNew(mustDecode(t, clone(obj).(map[string]any)))); got != 0 || calls != 1 {
		t.Errorf("after the end %d schemas were checked, with %d errors", calls, got)
	}
	for name, rules := range map[string]*catalog.Strategy{"v1": Rules(), "v1beta1": BetaRules(Rules())} {
		if got := nonsense(rules.Validate(t.Context(), obj)); got != 4 {
			t.Errorf("%s: %d errors", name, got)
		}
		if got := nonsense(rules.Validate(ctx, obj)); got != 0 {
			t.Errorf("%s: %d errors after the end", name, got)
		}
		if got := nonsense(rules.ValidateUpdate(ctx, obj, obj, "")); got != 0 {
			t.Errorf("%s: %d errors of an update after the end", name, got)
		}
	}
}

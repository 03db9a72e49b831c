package oraclebuiltins

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	core "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/core/service/storage"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestValidation mutates valid objects at one, two or three places, and expects the errors of Kubernetes' strategies:
// for the object as a new one, and as an update of the valid one through each of the kind's paths. It does the same in
// all other versions of the kind. It also compares the objects that the strategies make of valid objects. CHECKS is the
// number of mutants of each valid object, 30 if unset.
func TestValidation(t *testing.T) {
	t.Parallel()
	resources := kinds.Resources()
	kinds.Emulation{}.DropDisabled(resources, nil)
	byKind := map[string]*catalog.Resource{}
	for _, r := range resources {
		if !r.Secondary {
			byKind[r.Kind] = r
		}
	}
	seen := map[string]int{}
	for _, obj := range validObjects(t) {
		kind := obj["kind"].(string)
		seen[kind]++
		r := byKind[kind]
		for _, v := range r.Versions {
			at := fmt.Sprintf("%s/%d", kind, seen[kind])
			converted := runtime.DeepCopyJSON(obj)
			if v != r.Storage {
				if obj["apiVersion"] != r.APIVersion(r.Storage) {
					continue
				}
				at += " " + v.Name
				if err := r.Convert(r.Storage, v, converted); err != nil {
					t.Fatal(err)
				}
				converted["apiVersion"] = r.APIVersion(v)
			}
			t.Run(at, func(t *testing.T) {
				t.Parallel()
				(&comparison{t: t, r: r, v: v, kind: kind}).breakAll(converted)
			})
		}
	}
}

// TestValidationCoordinated does the same with Leases while the feature gate for their fields of coordinated leader
// election is on. It is not parallel, because Kubernetes has one gate for all.
func TestValidationCoordinated(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.CoordinatedLeaderElection,
		true)
	resources := kinds.Resources()
	kinds.CoordinateLeases(resources)
	lease := resources[slices.IndexFunc(resources, func(r *catalog.Resource) bool { return r.Kind == "Lease" })]
	for i, obj := range validObjects(t) {
		if obj["kind"] == "Lease" {
			t.Run(strconv.Itoa(i), func(t *testing.T) { (&comparison{t: t, r: lease, kind: "Lease"}).breakAll(obj) })
		}
	}
}

// TestValidationOfGroups does the same with groups of pods, their templates, pods in them, and pods that mount trust
// anchors and certificates, while their features are on, which no release enables by default. It is not parallel,
// because Kubernetes has one set of gates for all.
func TestValidationOfGroups(t *testing.T) {
	given := map[string]bool{}
	gates := featuregatetesting.FeatureOverrides{}
	for _, gate := range []featuregate.Feature{
		features.GenericWorkload, features.TopologyAwareWorkloadScheduling, features.DRAWorkloadResourceClaims,
		features.PodGroupPreemptionPolicy, features.ClusterTrustBundle, features.ClusterTrustBundleProjection,
		features.PodCertificateRequest,
	} {
		gates[gate], given[string(gate)] = true, true
	}
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, gates)
	resources := kinds.Resources()
	kinds.Emulation{}.DropDisabled(resources, given)
	for i, obj := range objectsOf(t, "testdata/groups.yaml") {
		kind := obj["kind"].(string)
		r := resources[slices.IndexFunc(resources, func(r *catalog.Resource) bool { return r.Kind == kind })]
		t.Run(fmt.Sprint(kind, i), func(t *testing.T) { (&comparison{t: t, r: r, kind: kind}).breakAll(obj) })
	}
}

// validObjects returns the objects of testdata/objects.yaml.
func validObjects(t *testing.T) []map[string]any { return objectsOf(t, "testdata/objects.yaml") }

func objectsOf(t *testing.T, file string) (all []map[string]any) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(data), "\n---\n") {
		in, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tree(t, in))
	}
	return all
}

// breakAll compares the results for a valid object and its mutants, at creation and in updates.
func (c *comparison) breakAll(obj map[string]any) {
	rounds := 30
	if s := os.Getenv("CHECKS"); s != "" {
		rounds, _ = strconv.Atoi(s)
	}
	c.create(obj)
	if len(c.agreed) > 0 && !older(obj) {
		c.t.Fatalf("not valid: %q", c.agreed)
	}
	old := c.stored(obj)
	for seed := range int64(rounds) {
		m := newMutator(seed)
		m.many = c.r.Group == "resource.k8s.io"
		broken := m.mutate(obj, 1+int(seed%3))
		c.object = fmt.Sprintf("seed %d: %s", seed, m.done)
		c.create(broken)
		changed := m.mutate(old, 1+int(seed%3))
		c.object = fmt.Sprintf("seed %d: %s", seed, m.done)
		c.update(changed, old, "", strategies[c.kind])
		for _, part := range slices.Sorted(maps.Keys(parts)) {
			if sub, ok := strings.CutPrefix(part, c.kind+"/"); ok {
				c.update(changed, old, sub, parts[part])
			}
		}
		if c.t.Failed() && os.Getenv("CHECKS") == "" {
			return
		}
	}
}

// comparison is the work on one kind.
type comparison struct {
	t        *testing.T
	r        *catalog.Resource
	v        *catalog.Version // nil for the stored version
	kind     string
	object   string // how the object was made
	agreed   []string
	warnings []string // warnings
}

func (c *comparison) version() *catalog.Version {
	if c.v != nil {
		return c.v
	}
	return c.r.Storage
}

func (c *comparison) rules() *catalog.Strategy { return c.r.StrategyFor(c.version()) }

func (c *comparison) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: c.r.Group, Version: c.version().Name, Kind: c.kind}
}

func (c *comparison) ctx(subresource string) context.Context {
	ns := ""
	if c.r.Namespaced {
		ns = "b"
	}
	ctx := request.WithNamespace(context.Background(), ns)
	if c.kind == "ResourceClaim" { // its status depends on the user's permissions
		ctx = request.WithUser(ctx, &user.DefaultInfo{Name: "a"})
	}
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		APIGroup: c.r.Group, APIVersion: c.version().Name, Resource: c.r.Plural, Subresource: subresource,
	})
}

// inNamespace returns the errors for a namespace without labels.
func (c *comparison) inNamespace(obj, old map[string]any, subresource string) field.ErrorList {
	if c.rules().ValidateIn == nil {
		return nil
	}
	return c.rules().ValidateIn(obj, old, subresource, func() (map[string]string, error) { return nil, nil })
}

// read reads an object like kube-apiserver: into its Go type, with defaults, and into the internal type. ours is our
// form.
func (c *comparison) read(obj map[string]any) (ours map[string]any, theirs runtime.Object, ok bool) {
	c.t.Helper()
	ours = runtime.DeepCopyJSON(obj)
	_, err := c.rules().Decode(ours)
	data := marshal(c.t, obj)
	typed, _ := legacyscheme.Scheme.New(c.gvk())
	if theirErr := kjson.UnmarshalCaseSensitivePreserveInts(data, typed); theirErr != nil || err != nil {
		if (theirErr == nil) != (err == nil) {
			c.t.Errorf("%s: decoding: %v, want %v", c.object, err, theirErr)
		}
		if c.object == "" {
			c.t.Fatal(err)
		}
		return nil, nil, false
	}
	legacyscheme.Scheme.Default(typed)
	theirs, err = legacyscheme.Scheme.UnsafeConvertToVersion(typed,
		schema.GroupVersion{Group: c.r.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return nil, nil, false // a conversion refuses invalid objects
	}
	if c.rules().Default != nil {
		c.rules().Default(ours)
	}
	return ours, theirs, true
}

// declared returns errs with the errors of the declarative validation, which Kubernetes' registry calls after a
// strategy.
func declared(
	ctx context.Context, strategy any, obj, old runtime.Object, errs field.ErrorList, of operation.Type,
) field.ErrorList {
	s, ok := strategy.(rest.DeclarativeValidationStrategy)
	if !ok {
		return errs
	}
	return s.ValidateDeclaratively(ctx, obj, old, errs, of, s.DeclarativeValidationConfig(ctx, obj, old))
}

func (c *comparison) create(obj map[string]any) {
	c.t.Helper()
	ours, theirs, ok := c.read(obj)
	if !ok {
		if c.object == "" {
			c.t.Fatal("cannot be read")
		}
		return
	}
	env := catalog.Env{Now: time.Now()}
	if c.rules().PrepareCreate != nil {
		c.rules().PrepareCreate(ours, env)
	}
	s := strategies[c.kind]
	if c.kind == "Service" {
		normalizeClusterIPs(storage.After{Service: theirs.(*core.Service)}, storage.Before{})
	}
	s.PrepareForCreate(c.ctx(""), theirs)
	errs := c.ask(func() field.ErrorList {
		return declared(c.ctx(""), s, theirs, nil, s.Validate(c.ctx(""), theirs), operation.Create)
	})
	if len(c.texts(errs)) == 0 {
		c.warned("create", c.rules().Warnings(ours, nil, ""), s.WarningsOnCreate(c.ctx(""), theirs))
	}
	ourErrs := append(c.inNamespace(ours, nil, ""), c.rules().Validate(c.ctx(""), ours)...)
	c.same("create", ourErrs, errs, ours, theirs)
}

// warned compares both sides' warnings. Kubernetes orders some by Go's maps.
func (c *comparison) warned(desc string, ours, theirs []string) {
	c.t.Helper()
	slices.Sort(ours)
	slices.Sort(theirs)
	c.warnings = append(c.warnings, theirs...)
	if !slices.Equal(ours, theirs) {
		c.t.Errorf("%s: warnings of %s\n+ %q\n- %q", c.object, desc, only(ours, theirs), only(theirs, ours))
	}
}

// older reports whether an object was stored by an older Kubernetes, and would be invalid today. An annotation marks
// such objects.
func older(obj map[string]any) bool {
	annotations, _ := obj["metadata"].(map[string]any)["annotations"].(map[string]any)
	return annotations["stored"] == "before"
}

// stored returns the stored form of a valid object.
func (c *comparison) stored(obj map[string]any) map[string]any {
	ours, _, _ := c.read(obj)
	if c.rules().PrepareCreate != nil && !older(obj) {
		kept := runtime.DeepCopyJSON(ours)
		c.rules().PrepareCreate(ours, catalog.Env{Now: time.Now()})
		if kept["status"] != nil {
			ours["status"] = kept["status"]
		}
		if c.kind == "Node" { // an older Kubernetes has stored fields that today's drops
			ours["spec"] = kept["spec"]
		}
	}
	meta := ours["metadata"].(map[string]any)
	meta["resourceVersion"] = "1"
	if !c.r.NoGeneration {
		meta["generation"] = int64(1)
	}
	return ours
}

func (c *comparison) update(obj, old map[string]any, subresource string, s rest.RESTUpdateStrategy) {
	c.t.Helper()
	ours, theirs, ok := c.read(obj)
	was, theirOld, okOld := c.read(old)
	if !ok || !okOld {
		return
	}
	c.prepareUpdate(ours, was, subresource)
	m, _ := meta.Accessor(theirs)
	oldMeta, _ := meta.Accessor(theirOld)
	m.SetGeneration(oldMeta.GetGeneration())
	if c.kind == "Service" && subresource == "" {
		ok := keepGiven(theirs.(*core.Service), theirOld.(*core.Service))
		if c.keepFamilies(ours, was) != ok {
			c.t.Errorf("%s: families of addresses: accepted: %v, want %v", c.object, !ok, ok)
		}
		if !ok {
			return
		}
	}
	s.PrepareForUpdate(c.ctx(subresource), theirs, theirOld)
	errs := c.ask(func() field.ErrorList {
		ctx := c.ctx(subresource)
		return declared(ctx, s, theirs, theirOld, s.ValidateUpdate(ctx, theirs, theirOld), operation.Update)
	})
	if len(c.texts(errs)) == 0 {
		c.warned("update "+subresource, c.rules().Warnings(ours, was, subresource),
			s.WarningsOnUpdate(c.ctx(subresource), theirs, theirOld))
	}
	ourErrs := append(c.inNamespace(ours, was, subresource),
		c.rules().ValidateUpdate(c.ctx(subresource), ours, was, subresource)...)
	c.same("update "+subresource, ourErrs, errs, ours, theirs)
}

// ask returns Kubernetes' errors, or nil if it panics. A server would then answer 500.
func (c *comparison) ask(judge func() field.ErrorList) (errs field.ErrorList) {
	defer func() {
		if r := recover(); r != nil {
			errs = field.ErrorList{{Type: "panic", Detail: fmt.Sprint(r)}}
		}
	}()
	return judge()
}

// prepareUpdate makes the changes of package rest around the rule.
func (c *comparison) prepareUpdate(obj, old map[string]any, subresource string) {
	meta, was := obj["metadata"].(map[string]any), old["metadata"].(map[string]any)
	meta["generation"] = was["generation"]
	if c.rules().PrepareUpdate != nil {
		c.rules().PrepareUpdate(obj, old, subresource, catalog.Env{Now: time.Now()})
		return
	}
	if subresource == "status" {
		status := obj["status"]
		clear(obj)
		maps.Copy(obj, old)
		obj["status"] = status
		return
	}
	if c.version().Status {
		obj["status"] = old["status"]
	}
	for name, v := range obj {
		if name != "metadata" && !c.r.NoGeneration && len(difference("", v, old[name])) > 0 {
			meta["generation"] = was["generation"].(int64) + 1
		}
	}
}

// fromMetadata are errors that rest finds, not the rules of the kind.
var fromMetadata = regexp.MustCompile(
	`^metadata\.(name|generateName|namespace|labels|annotations|ownerReferences|resourceVersion|uid|creationTimestamp|managedFields|generation|deletion|finalizers|selfLink|annotations)\b`)

func (c *comparison) same(desc string, ours, theirs field.ErrorList, obj map[string]any, their runtime.Object) {
	c.t.Helper()
	if len(theirs) == 1 && theirs[0].Type == "panic" {
		return
	}
	got, want := c.texts(ours), c.texts(theirs)
	c.agreed = got
	if !slices.Equal(got, want) {
		c.t.Errorf("%s: %s\n+ %q\n- %q", c.object, desc, only(got, want), only(want, got))
		return
	}
	if len(want) > 0 {
		return
	}
	gv := schema.GroupVersion{Group: c.r.Group, Version: c.version().Name}
	v1, err := legacyscheme.Scheme.UnsafeConvertToVersion(their, gv)
	if err != nil {
		c.t.Fatal(err)
	}
	read, err := legacyscheme.Scheme.New(gv.WithKind(c.r.Kind)) // its form after a write and a read
	if err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(marshal(c.t, v1), read); err != nil {
		c.t.Fatal(err)
	}
	legacyscheme.Scheme.Default(read)
	if c.rules().Default != nil {
		c.rules().Default(obj)
	}
	typed := c.version().New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, typed); err != nil {
		c.t.Fatal(err)
	}
	a, b := tree(c.t, marshal(c.t, typed)), tree(c.t, marshal(c.t, read))
	for _, o := range []map[string]any{a, b} {
		m := o["metadata"].(map[string]any)
		g := m["generation"]
		if desc == "create" {
			g = nil // rest sets it
		}
		o["metadata"] = map[string]any{"generation": g, "labels": m["labels"], "annotations": m["annotations"]}
		delete(o, "kind")
		delete(o, "apiVersion")
	}
	if diff := difference("", timeless(a), timeless(b)); len(diff) > 0 {
		c.t.Errorf("%s: %s:\n%s", c.object, desc, strings.Join(diff, "\n"))
	}
}

// timeless replaces times of this hour, in place.
func timeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			v[key] = timeless(e)
		}
	case []any:
		for i, e := range v {
			v[i] = timeless(e)
		}
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil && time.Since(t).Abs() < time.Hour {
			return "now"
		}
	}
	return v
}

// texts returns the errors as sorted texts without repetitions: path, type, and the first line of the message.
func (c *comparison) texts(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		if fromMetadata.MatchString(e.Field) && !strings.Contains(e.Detail, "deletion cost") {
			continue
		}
		if e.Field == "spec.healthCheckNodePort" && e.Type == field.ErrorTypeRequired {
			continue // it would be given one
		}
		detail, _, _ := strings.Cut(e.Detail, "\n")
		out = append(out, fmt.Sprintf("%s: %s: %s%s", e.Field, e.Type, c.value(e), detail))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wholly lists the kinds with errors that are compared including the objects that they show.
var wholly = []string{"ResourceClaim", "ResourceClaimTemplate", "IPAddress"}

// value returns the value in an error if it is a string, a number or a boolean. Errors show objects with other names,
// and empty ones as null.
func (c *comparison) value(e *field.Error) string {
	data, err := json.Marshal(e.BadValue)
	if err == nil && slices.Contains(wholly, c.kind) {
		return strings.ReplaceAll(string(data), "[]", "null") + ": " // an empty list equals an absent one
	}
	if err != nil || len(data) == 0 || string(data) == "null" || strings.ContainsAny(string(data[:1]), "{[") {
		return ""
	}
	return string(data) + ": "
}

func only(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// mutator changes JSON objects at random places.
type mutator struct {
	*rand.Rand
	many bool // also makes long lists
	done []string
}

func newMutator(seed int64) *mutator { return &mutator{Rand: rand.New(rand.NewSource(seed))} }

var words = []string{
	"OldestEmulationVersion", "1.36.0", "v1.36.0", "1.34.7-rc.1", "1.37", "0.0.0",
	"", "", "a", "A_b", "-x", "x.y", "UPPER", strings.Repeat("l", 64), strings.Repeat("m", 300), "10.0.0.1",
	"010.1.1.1", "fd00::1", "10.0.0.0/8", "10.0.0.1/8", "127.0.0.1", "a/b", "../x", "/abs", "..x", "a//b",
	"TCP", "SCTP", "25%", "150%", "1.5", "None", "Always", "Never", "OnFailure", "Local", "Cluster", "ClientIP",
	"ExternalName", "NodePort", "LoadBalancer", "ClusterIP", "IPv6", "Exists", "In", "Gt", "DoesNotExist",
	"metadata.labels['a b']", "metadata.annotations['x']", "metadata.namespace", "limits.memory", "kernel.msgmax",
	"Unmasked", "Localhost", "RuntimeDefault", "Unconfined", "Bidirectional", "windows", "linux", "http", "Recreate",
	"OnDelete", "RollingUpdate",
	"Parallel", "Failed", "FailJob", "Indexed", "NonIndexed", "1,3", "2-1", "0-2", "@hourly", "TZ=UTC 0 0 * * *",
	"Mars/Phobos", "UTC", "Recycle", "Delete", "ReadWriteOncePod", "Block", "User", "ServiceAccount", "Role",
	"Namespace", "BestEffort", "Terminating", "Percent", "Max", "Value", "system-x", "*.a.b", "a*b", " nginx",
	"RequireDualStack", "PreferDualStack", "True",
}

// expressions are about devices: valid ones, invalid ones, some of another type than bool, and some that take too long.
var expressions = []string{
	"", "true", "device.driver", "device.attributes['a'].b", "device.capacity", "device.nothing", "device.driver ==",
	"1 + 1", "'a' == 1", strings.Repeat("a", 10*1024+1),
	"device.driver.matches('.*') && device.attributes.exists(d, device.attributes[d].exists(k, device.attributes.exists(e, e.contains(k) && device.attributes[e].exists(l, k.matches(l)))))",
	"cel.bind(x, device.attributes['a'], x.b && x.c)", "device.attributes['a'].v.isGreaterThan(semver('1.0.0'))",
	"isSemver('v1.0', true)", "device.allowMultipleAllocations == true",
}

func (m *mutator) word() string { return words[m.Intn(len(words))] }

var amounts = []string{"0", "-1", "1", "500m", "3Gi", "1.5"}

// mutate returns a copy of obj with changes at n places.
func (m *mutator) mutate(obj map[string]any, n int) map[string]any {
	m.done = nil
	out := runtime.DeepCopyJSON(obj)
	for range n {
		m.object(out, "")
	}
	return out
}

func (m *mutator) object(obj map[string]any, path string) {
	keys := slices.Sorted(maps.Keys(obj))
	if len(keys) == 0 {
		return
	}
	key := keys[m.Intn(len(keys))]
	if path == "" && (key == "metadata" || key == "kind" || key == "apiVersion") {
		key = "spec"
		if obj[key] == nil {
			return
		}
	}
	at := path + "." + key
	if m.Intn(9) == 0 && path != "" {
		m.note(at, "gone")
		delete(obj, key)
		return
	}
	obj[key] = m.value(obj[key], at)
	if m.Intn(30) == 0 && path != "" {
		m.note(at, "renamed")
		obj[m.word()] = obj[key]
	}
}

func (m *mutator) note(path string, value any) {
	m.done = append(m.done, fmt.Sprintf("%s=%v", path, value))
}

func (m *mutator) value(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		if m.Intn(15) == 0 {
			m.note(path, "{}")
			return map[string]any{}
		}
		m.object(v, path)
		return v
	case []any:
		return m.list(v, path)
	case string:
		s := m.word()
		if strings.HasSuffix(path, ".expression") {
			s = expressions[m.Intn(len(expressions))]
		}
		if strings.ContainsAny(v, "0123456789") && m.Intn(2) == 0 && !strings.ContainsAny(v, ".:/*") {
			s = amounts[m.Intn(len(amounts))]
		}
		m.note(path, strconv.Quote(s[:min(len(s), 20)]))
		return s
	case bool:
		m.note(path, !v)
		return !v
	case int64:
		n := []int64{0, -1, 1, 2, 80, 70000, 1 << 31, 1<<31 - 1, 600, 100001}[m.Intn(10)]
		m.note(path, n)
		return n
	}
	return v
}

func (m *mutator) list(v []any, path string) any {
	if len(v) == 0 {
		return v
	}
	i, how := m.Intn(len(v)), m.Intn(8)
	if strings.HasSuffix(path, ".policies") && (how == 0 || how == 2 && len(v) == 1) {
		return v // we treat an empty list as absent, and set the default
	}
	if strings.Contains(path, ".attributes.") && (how == 0 || how == 2 && len(v) == 1) {
		return v // an empty list equals an absent one, and a gate guards its rule
	}
	switch how {
	case 0:
		m.note(path, "[]")
		return []any{}
	case 1:
		again := 1
		if m.many {
			again = []int{1, 3, 33, 129}[m.Intn(4)]
		}
		m.note(path, fmt.Sprintf("%d again %d times", i, again))
		for range again {
			v = append(v, runtime.DeepCopyJSONValue(v[i]))
		}
		return v
	case 2:
		m.note(path, fmt.Sprintf("without %d", i))
		return slices.Delete(v, i, i+1)
	default:
		v[i] = m.value(v[i], fmt.Sprintf("%s[%d]", path, i))
		return v
	}
}

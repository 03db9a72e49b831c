package kinds

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// TestFeatureFields checks that each path of features.txt exists in the Go types of its resource.
func TestFeatureFields(t *testing.T) {
	t.Parallel()
	types := map[string]reflect.Type{}
	for _, r := range Resources() {
		types[strings.TrimSuffix(r.Plural+"."+r.Group, ".")] = reflect.TypeOf(r.Storage.New())
	}
	for _, f := range features() {
		at := map[string][]string{f.resource: nil}
		switch f.resource {
		case "-":
			continue
		case "podspec":
			at = podSpecs
		}
		for resource, prefix := range at {
			if types[resource] == nil {
				t.Errorf("%s: no resource %s", f.name, resource)
				continue
			}
			for _, path := range f.below(prefix).paths {
				if missing := fieldMissing(types[resource], path); missing != "" {
					t.Errorf("%s: %s has no %s of %s", f.name, resource, missing, strings.Join(path, "."))
				}
			}
		}
	}
}

// fieldMissing returns the field of a path that a type does not have, "" if it has all.
func fieldMissing(t reflect.Type, path []string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map && path[0] != "*" {
		t = t.Elem()
	}
	if path[0] == "*" {
		return fieldMissing(t.Elem(), path[1:])
	}
	for name := range strings.SplitSeq(path[0], "|") {
		name, _, _ = strings.Cut(strings.Replace(name, "!", "", 1), "=")
		field, ok := fieldOf(t, name)
		if !ok {
			return name
		}
		if len(path) > 1 {
			if missing := fieldMissing(field, path[1:]); missing != "" {
				return missing
			}
		}
	}
	return ""
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}

// dropped returns the remaining object when features are disabled; old is "" for a new object.
func dropped(t *testing.T, plural string, e Emulation, given map[string]bool, obj, old string) object.Object {
	t.Helper()
	resources := Resources()
	e.DropDisabled(resources, given)
	r := resources[slices.IndexFunc(resources, func(r *catalog.Resource) bool { return r.Plural == plural })]
	var now, was object.Object
	if err := yaml.Unmarshal([]byte(obj), &now); err != nil {
		t.Fatal(err)
	}
	if old == "" {
		r.Strategy.PrepareCreate(now, catalog.Env{})
		return object.Map(now, "spec")
	}
	if err := yaml.Unmarshal([]byte(old), &was); err != nil {
		t.Fatal(err)
	}
	r.Strategy.PrepareUpdate(now, was, "", catalog.Env{})
	return object.Map(now, "spec")
}

// TestDropDisabled switches features off, and has releases emulated that do not have them.
func TestDropDisabled(t *testing.T) {
	t.Parallel()
	older, err := ParseEmulation([]string{"1.34"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const pod = `{metadata: {}, spec: {hostnameOverride: a, containers: [{name: c, restartPolicyRules: [{action: Restart}]}],
		initContainers: [{name: i, restartPolicy: Always}, {name: j, restartPolicy: Never}]}}`
	const bare = `{metadata: {}, spec: {containers: [{name: c}]}}`
	override := func(spec object.Object) bool { return spec["hostnameOverride"] == "a" }
	rules := func(spec object.Object) bool {
		return object.Objects(spec["containers"])[0]["restartPolicyRules"] != nil &&
			object.Objects(spec["initContainers"])[1]["restartPolicy"] == "Never"
	}
	for name, test := range map[string]struct {
		e        Emulation
		given    map[string]bool
		old      string
		override bool
		rules    bool
	}{
		"the server's own release": {Emulation{}, nil, "", true, true},
		"one switched off":         {Emulation{}, map[string]bool{"HostnameOverride": false}, "", false, true},
		"an older release":         {older, nil, "", false, false},
		"one switched on":          {older, map[string]bool{"ContainerRestartRules": true}, "", false, true},
		"an update":                {older, nil, bare, false, false},
		"in use":                   {older, nil, pod, true, true},
	} {
		spec := dropped(t, "pods", test.e, test.given, pod, test.old)
		if override(spec) != test.override || rules(spec) != test.rules {
			t.Errorf("%s: %v", name, spec)
		}
		if object.Objects(spec["initContainers"])[0]["restartPolicy"] != "Always" {
			t.Errorf("%s: a sidecar is none: %v", name, spec)
		}
	}
	const job = `{metadata: {}, spec: {managedBy: example.com/a, template: {metadata: {}, spec: {hostnameOverride: a}}}}`
	off := map[string]bool{"JobManagedBy": false, "HostnameOverride": false}
	made := dropped(t, "jobs", Emulation{}, off, job, "")
	if made["managedBy"] != nil {
		t.Errorf("a new job: %v", made)
	}
	if object.Map(made, "template", "spec")["hostnameOverride"] != nil {
		t.Errorf("the template of a job: %v", made)
	}
	changed := dropped(t, "jobs", Emulation{}, off, job, `{metadata: {}, spec: {}}`)
	if changed["managedBy"] != "example.com/a" {
		t.Errorf("a field of a line with + goes only at a creation: %v", changed)
	}
}

// TestDropDisabledOfDevices tests new devices with fields that are off by default in every release, and with their
// gates.
func TestDropDisabledOfDevices(t *testing.T) {
	t.Parallel()
	const slice = `{metadata: {}, spec: {devices: [{name: d, attributes: {a: {ints: [1, 2]}, b: {int: 3}},
		nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "1"}}}}]}}`
	for name, test := range map[string]struct {
		given           map[string]bool
		old             string
		lists, mappings bool
	}{
		"by default": {nil, "", false, false},
		"lists":      {map[string]bool{"DRAListTypeAttributes": true}, "", true, false},
		"mappings":   {map[string]bool{"DRANodeAllocatableResources": true}, "", false, true},
		"in use":     {nil, slice, true, true},
	} {
		d := object.Objects(dropped(t, "resourceslices", Emulation{}, test.given, slice, test.old)["devices"])[0]
		lists := object.Map(d, "attributes", "a")["ints"] != nil
		if mappings := d["nodeAllocatableResources"] != nil; lists != test.lists || mappings != test.mappings {
			t.Errorf("%s: %v", name, d)
		}
		if object.Map(d, "attributes", "b")["int"] == nil {
			t.Errorf("%s: an attribute with one value has lost it: %v", name, d)
		}
	}
}

// TestServiceNames refuses names of new services that begin with a digit where releases did.
func TestServiceNames(t *testing.T) {
	t.Parallel()
	for relaxed, want := range map[bool]string{
		true: "[]",
		false: `[metadata.name: Invalid value: "9-web": a DNS-1035 label must consist of lower case alphanumeric characters or ` +
			`'-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', ` +
			`regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')]`,
	} {
		resources := Resources()
		Emulation{}.DropDisabled(resources, map[string]bool{relaxedServiceNames: relaxed})
		i := slices.IndexFunc(resources, func(r *catalog.Resource) bool { return r.Plural == "services" })
		var obj object.Object
		err := yaml.Unmarshal([]byte(`{metadata: {name: 9-web}, spec: {type: ExternalName, externalName: a.b}}`), &obj)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(resources[i].Strategy.Validate(t.Context(), obj))
		if !strings.HasPrefix(got, strings.TrimSuffix(want, "]")) || relaxed && strings.Contains(got, "9-web") {
			t.Errorf("relaxed %v: %s", relaxed, got)
		}
	}
}

// TestDropNothing checks that only the strategies of resources change that lose fields: those of features that the
// server lacks, and of one that is switched off.
func TestDropNothing(t *testing.T) {
	t.Parallel()
	all, want := map[string]bool{}, map[string]bool{}
	for _, name := range Features() {
		all[name] = name != comparingTolerations
	}
	for _, f := range features() {
		if f.since != nil {
			continue
		}
		if f.resource != "podspec" {
			want[f.resource] = true
			continue
		}
		for resource := range podSpecs {
			want[resource] = true
		}
	}
	changed := func() map[string]bool {
		resources, before := Resources(), map[*catalog.Resource]uintptr{}
		for _, r := range resources {
			before[r] = reflect.ValueOf(r.Strategy.PrepareCreate).Pointer()
		}
		Emulation{}.DropDisabled(resources, all)
		out := map[string]bool{}
		for _, r := range resources {
			if before[r] != reflect.ValueOf(r.Strategy.PrepareCreate).Pointer() {
				out[strings.TrimSuffix(r.Plural+"."+r.Group, ".")] = true
			}
		}
		return out
	}
	if got := changed(); !maps.Equal(got, want) {
		t.Errorf("with all features %v change, want %v", got, want)
	}
	all["HPAConfigurableTolerance"], want["horizontalpodautoscalers.autoscaling"] = false, true
	if got := changed(); !maps.Equal(got, want) {
		t.Errorf("without one %v change, want %v", got, want)
	}
	if names := Features(); len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the features are %q", names)
	}
}

// TestFeatureGates sets features as flags do, and checks the effect of two of them.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
	var given map[string]bool
	gates := FeatureGates(&given)
	if len(gates) != len(Features()) {
		t.Errorf("%d gates of %d features", len(gates), len(Features()))
	}
	const labels, plugin = "PodTopologyLabelsAdmission", "PodTopologyLabels"
	if (Emulation{}).LacksPlugin(plugin, given) {
		t.Error("the plugin is off by default")
	}
	set, ok := gates[labels].(func(bool))
	if !ok {
		t.Fatalf("the gate is a %T", gates[labels])
	}
	set(false)
	if !(Emulation{}).LacksPlugin(plugin, given) || (Emulation{}).LacksPlugin("LimitRanger", given) {
		t.Errorf("what is given is %v, and means nothing for the plugin", given)
	}
	if err := CheckFeatures(given); err != nil {
		t.Error(err)
	}
	given["Nope"] = true
	if err := CheckFeatures(given); err == nil || !strings.Contains(err.Error(), `"Nope" is not a feature`) {
		t.Errorf("an unknown feature: %v", err)
	}
}

// Tolerations compare with numbers only while the feature is on, or if they did before.
func TestComparingTolerations(t *testing.T) {
	t.Parallel()
	deployment := func(operator, value string) object.Object {
		var obj object.Object
		if err := yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: b}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers: [{name: c, image: i}]
      tolerations: [{key: k, operator: %s, value: %q, effect: NoSchedule}]
`, operator, value), &obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	const path = "spec.template.spec.tolerations[0]."
	for _, test := range []struct {
		on              bool
		operator, value string
		before          string // the operator of the old object, "" for a creation
		want            string
	}{
		{false, "Gt", "5", "", path + "operator"},
		{false, "Gt", "5", "Equal", path + "operator"},
		{false, "Gt", "5", "Lt", ""},
		{true, "Gt", "5", "", ""},
		{true, "Lt", "-7", "Equal", ""},
		{true, "Gt", "05", "", path + "value"},
		{true, "Lt", "x", "", path + "value " + path + "value"},
		{true, "Near", "5", "", path + "operator"},
	} {
		all := Resources()
		Emulation{}.DropDisabled(all, map[string]bool{comparingTolerations: test.on})
		i := slices.IndexFunc(all, func(r *catalog.Resource) bool { return r.Plural == "deployments" })
		rules := all[i].Strategy
		made := func(operator, value string) object.Object {
			obj := deployment(operator, value)
			if _, err := rules.Decode(obj); err != nil {
				t.Fatal(err)
			}
			rules.Default(obj)
			return obj
		}
		errs := rules.Validate(t.Context(), made(test.operator, test.value))
		if test.before != "" {
			errs = rules.ValidateUpdate(t.Context(), made(test.operator, test.value), made(test.before, "5"), "")
		}
		var got []string
		for _, e := range errs {
			got = append(got, e.Field)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%+v: %v", test, errs)
		}
	}
}

// TestStrictAddresses has addresses written as they could be before 1.36, with the feature, without it, and in a
// release that does not have it.
func TestStrictAddresses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ resource, text, want string }{
		{"services",
			`{"spec":{"ports":[{"port":1,"protocol":"TCP"}],"type":"ClusterIP","sessionAffinity":"None","externalIPs":["010.1.2.3"]}}`,
			`spec.externalIPs[0]: Invalid value: "010.1.2.3": must not have leading 0s`},
		{"networkpolicies.networking.k8s.io",
			`{"spec":{"podSelector":{},"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.1/8"}}]}]}}`,
			`spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length`},
		{"endpoints",
			`{"subsets":[{"addresses":[{"ip":"::ffff:1.2.3.4"}],"ports":[{"port":1,"protocol":"TCP"}]}]}`,
			`subsets[0].addresses[0].ip: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address`},
		{"endpointslices.discovery.k8s.io", `{"addressType":"IPv4","endpoints":[{"addresses":["1.02.3.4"]}]}`,
			`endpoints[0].addresses[0]: Invalid value: "1.02.3.4": must not have leading 0s`},
		{"pods",
			`{"spec":{"containers":[{"name":"c","image":"i","imagePullPolicy":"Always","terminationMessagePolicy":"File"}],
			"restartPolicy":"Always","dnsPolicy":"ClusterFirst","hostAliases":[{"ip":"01.2.3.4"}]}}`,
			`spec.hostAliases[0].ip: Invalid value: "01.2.3.4": must not have leading 0s`},
	} {
		validate := func(e Emulation, given map[string]bool) string {
			all := Resources()
			e.DropDisabled(all, given)
			for _, r := range all {
				if strings.TrimSuffix(r.Plural+"."+r.Group, ".") != test.resource {
					continue
				}
				obj := object.Object{"metadata": object.Object{"name": "n", "namespace": "default"}}
				if err := json.Unmarshal([]byte(test.text), &obj); err != nil {
					t.Fatal(err)
				}
				v := r.Versions[len(r.Versions)-1]
				obj["kind"], obj["apiVersion"] = r.Kind, r.APIVersion(v)
				if _, err := r.Strategy.Decode(obj); err != nil {
					t.Fatal(err)
				}
				r.Strategy.Default(obj)
				if err := r.Strategy.Validate(t.Context(), obj).ToAggregate(); err != nil {
					return err.Error()
				}
			}
			return ""
		}
		if got := validate(Emulation{}, nil); got != test.want {
			t.Errorf("%s: %q, want %q", test.resource, got, test.want)
		}
		if got := validate(Emulation{}, map[string]bool{rule.StrictAddresses: false}); got != "" {
			t.Errorf("%s without the feature: %s", test.resource, got)
		}
		if got := validate(Emulation{Version: version.MustParse("1.35")}, nil); got != "" {
			t.Errorf("%s in 1.35: %s", test.resource, got)
		}
	}
}

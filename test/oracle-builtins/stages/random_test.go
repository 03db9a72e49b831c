package stages

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cases is how many random cases are compared; ORACLE_WORKLOAD_CASES makes it more.
func cases() int {
	if n, err := strconv.Atoi(os.Getenv("ORACLE_WORKLOAD_CASES")); err == nil {
		return n
	}
	return 2000
}

// These are the parts of random Stages and objects.
var (
	keys = []string{
		".status.phase", ".metadata.deletionTimestamp", ".metadata.finalizers", ".metadata.finalizers.[]",
		`.metadata.annotations["a"]`, `.metadata.labels["l"]`,
		`.status.conditions.[] | select( .type == "Ready" ) | .status`,
		".spec.containers.[].name", ".spec.replicas", ".spec.replicas > 1", ".spec.containers | length", ".spec.flag",
		".spec.nothing.there", ".spec.containers.name", `if .spec.flag then "yes" else "no" end`, ".spec.ratio", "null",
		"empty", "[.spec.replicas]", `.metadata.annotations["n"]`, `.metadata.annotations["d"]`,
		`.metadata.annotations["t"]`, `.metadata.ownerReferences.[].kind`,
	}
	values = []string{
		"Running", "Pending", "true", "false", "1", "2", "yes", "no", "x", "True", "a", "1.5", "", "Job",
	}
	templates = []string{
		"phase: Running\nat: {{ Now | Quote }}",
		"{{ range .spec.containers }}\n- name: {{ .name | Quote }}\n{{ end }}",
		"a: {{ .metadata.annotations.a | Quote }}\nb: {{ or .metadata.uid \"\" | Quote }}",
		"conditions:\n{{ range NodeConditions }}\n- type: {{ .type | Quote }}\n  status: {{ .status | Quote }}\n{{ end }}",
		"spec:\n{{ YAML .spec 1 }}", "ip: {{ PodIPWith .spec.nodeName false \"u\" .metadata.name \"\" }}",
		"n: {{ .spec.replicas }}\nq: {{ .spec.replicas | Quote }}\nr: {{ .spec.ratio }}",
		"{{ with .spec.nothing }}x: 1{{ else }}y: {{ default \"z\" .spec.nothing }}{{ end }}",
		"fails: {{ index .spec.containers 7 }}", "fails: {{ .metadata.name.more }}", "no yaml: : {",
		"{{ $x := dict \"k\" (list 1 2) }}{{ YAML $x }}",
		"up: {{ .metadata.name | upper | trunc 3 }}\njoined: {{ list \"a\" \"b\" | join \",\" | b64enc }}",
		"n: {{ len .spec.containers | add 1 }}\nf: {{ printf \"%v-%s\" .spec.flag Version }}",
		"{{ range $i, $c := .spec.containers }}c{{ $i }}: {{ $c.name }}\n{{ end }}",
		"{{ NodeIPsWith .spec.nodeName | toJson }}",
	}
	delays = []string{"5s", "1m", "", "soon", "2006-01-02T15:05:05Z", "2006-01-02T15:04:05.5Z", "7", "-3s"}
)

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// randomObject returns a pod-like object.
func randomObject(r *rand.Rand) map[string]any {
	annotations, labels := map[string]any{}, map[string]any{}
	for key, from := range map[string][]string{
		"a": values, "n": {"3", "0", "0x10", "many", ""}, "d": delays, "t": delays,
	} {
		if r.IntN(2) == 0 {
			annotations[key] = pick(r, from)
		}
	}
	if r.IntN(2) == 0 {
		labels["l"] = pick(r, values)
	}
	meta := map[string]any{"name": "object", "labels": labels, "annotations": annotations}
	if r.IntN(3) == 0 {
		meta["deletionTimestamp"] = "2006-01-02T15:04:35Z"
	}
	if n := r.IntN(4); n > 0 {
		var all []any
		for i := range n {
			all = append(all, fmt.Sprintf("f%d", i))
		}
		meta["finalizers"] = all
	}
	if r.IntN(3) == 0 {
		meta["ownerReferences"] = []any{map[string]any{"kind": pick(r, values)}}
	}
	spec := map[string]any{"nodeName": "node", "replicas": int64(r.IntN(3)), "flag": r.IntN(2) == 0, "ratio": 1.5}
	var containers []any
	for i := range r.IntN(3) {
		containers = append(containers, map[string]any{"name": pick(r, values), "image": fmt.Sprint("i", i)})
	}
	if containers != nil {
		spec["containers"] = containers
	}
	status := map[string]any{}
	if r.IntN(2) == 0 {
		status["phase"] = pick(r, values)
	}
	if r.IntN(2) == 0 {
		status["conditions"] = []any{map[string]any{"type": "Ready", "status": pick(r, []string{"True", "False"})}}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}
}

func randomRequirement(r *rand.Rand) map[string]any {
	q := map[string]any{"key": pick(r, keys)}
	switch r.IntN(4) {
	case 0:
		q["operator"], q["values"] = "In", []any{pick(r, values), pick(r, values)}
	case 1:
		q["operator"], q["values"] = "NotIn", []any{pick(r, values)}
	case 2:
		q["operator"] = "Exists"
	default:
		q["operator"] = "DoesNotExist"
	}
	if r.IntN(3) == 0 {
		return map[string]any{"jq": q}
	}
	return q
}

func randomExpression(r *rand.Rand, annotation string) map[string]any {
	key := fmt.Sprintf(".metadata.annotations[%q]", annotation)
	if r.IntN(4) == 0 {
		key = pick(r, keys)
		if strings.Contains(key, "length") {
			key = ".spec.replicas" // kwok takes no numbers that jq has counted
		}
	}
	if r.IntN(2) == 0 {
		return map[string]any{"jq": map[string]any{"expression": key}}
	}
	return map[string]any{"expressionFrom": key}
}

func randomPatch(r *rand.Rand) map[string]any {
	p := map[string]any{"template": pick(r, templates)}
	if r.IntN(2) == 0 {
		p["root"] = "status"
	}
	if r.IntN(2) == 0 {
		p["subresource"] = "status"
	}
	if r.IntN(3) == 0 {
		p["type"] = "merge"
	}
	if r.IntN(5) == 0 {
		p["type"] = "json"
		p["template"] = "- op: add\n  path: /a\n  value: {{ .metadata.name | Quote }}\n- op: remove\n  path: /b\n"
	}
	if r.IntN(4) == 0 {
		p["impersonation"] = map[string]any{"username": "someone"}
	}
	return p
}

func randomFinalizers(r *rand.Rand) map[string]any {
	some := func() (out []any) {
		for range r.IntN(3) {
			out = append(out, map[string]any{"value": fmt.Sprintf("f%d", r.IntN(5))})
		}
		return out
	}
	f := map[string]any{"empty": r.IntN(4) == 0}
	if add := some(); add != nil {
		f["add"] = add
	}
	if remove := some(); remove != nil {
		f["remove"] = remove
	}
	return f
}

func randomEvent(r *rand.Rand) map[string]any {
	return map[string]any{"type": "Normal", "reason": pick(r, values), "message": pick(r, values)}
}

// randomNext adds a Stage's actions, in the older form or in steps.
func randomNext(r *rand.Rand, spec map[string]any) {
	if r.IntN(2) == 0 {
		next := map[string]any{"delete": r.IntN(3) == 0}
		if r.IntN(2) == 0 {
			next["event"] = randomEvent(r)
		}
		if r.IntN(2) == 0 {
			next["finalizers"] = randomFinalizers(r)
		}
		if r.IntN(2) == 0 {
			next["statusTemplate"] = pick(r, templates)
			if r.IntN(3) == 0 {
				next["statusSubresource"] = "other"
			}
			if r.IntN(3) == 0 {
				next["statusPatchAs"] = map[string]any{"username": "someone"}
			}
		}
		if r.IntN(4) == 0 {
			next["patches"] = []any{randomPatch(r), randomPatch(r)}
		}
		spec["next"] = next
		return
	}
	var steps []any
	for range r.IntN(4) {
		step := map[string]any{}
		switch r.IntN(5) {
		case 0:
			step["event"] = randomEvent(r)
		case 1:
			step["finalizers"] = randomFinalizers(r)
		case 2:
			step["delete"] = true
			step["patch"] = randomPatch(r)
		case 3:
			step["apply"] = map[string]any{
				"template": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .metadata.name }}",
			}
		default:
			step["patch"] = randomPatch(r)
			step["event"] = randomEvent(r)
		}
		steps = append(steps, step)
	}
	spec["steps"] = steps
}

func randomStage(t *testing.T, r *rand.Rand, name string) string {
	t.Helper()
	selector := map[string]any{}
	var expressions []any
	for range r.IntN(3) {
		expressions = append(expressions, randomRequirement(r))
	}
	if expressions != nil {
		selector["matchExpressions"] = expressions
	}
	if r.IntN(4) == 0 {
		selector["matchLabels"] = map[string]any{"l": pick(r, values)}
	}
	if r.IntN(4) == 0 {
		selector["matchAnnotations"] = map[string]any{"a": pick(r, values)}
	}
	spec := map[string]any{"resourceRef": map[string]any{"apiGroup": "v1", "kind": "Pod"}, "selector": selector}
	if r.IntN(20) == 0 {
		delete(spec, "selector")
	}
	if r.IntN(2) == 0 {
		spec["weight"] = r.IntN(3)
	}
	if r.IntN(2) == 0 {
		spec["weightFrom"] = randomExpression(r, "n")
	}
	if r.IntN(2) == 0 {
		d := map[string]any{}
		for field, annotation := range map[string]string{"duration": "d", "jitterDuration": "t"} {
			if r.IntN(2) == 0 {
				d[field+"Milliseconds"] = r.IntN(5) * 1000
			}
			if r.IntN(2) == 0 {
				d[field+"From"] = randomExpression(r, annotation)
			}
		}
		spec["delay"] = d
	}
	if r.IntN(3) == 0 {
		spec["immediateNextStage"] = true
	}
	randomNext(r, spec)
	out, err := json.Marshal(map[string]any{
		"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestRandom checks that random Stages have the same effect on random objects as in kwok: the same Stages match, with
// the same weights, delays and actions. Weights are not negative, because kwok panics with negative ones. A Stage with
// failing templates has no effect here, and in kwok the actions before the failure.
func TestRandom(t *testing.T) {
	seed := uint64(11)
	matched, delayed, acts, failed := 0, 0, 0, 0
	for i := range cases() {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		var stages []string
		for n := range 1 + r.IntN(4) {
			stages = append(stages, randomStage(t, r, fmt.Sprintf("s%d", n)))
		}
		object := randomObject(r)
		want, got := theirs(t, stages, object), ours(t, stages, object)
		if diff := cmp.Diff(want, got); diff != "" {
			text, _ := json.Marshal(object)
			t.Fatalf("case %d: -kwok +ours:\n%s\n%s\nof\n%s", i, diff, strings.Join(stages, "\n"), text)
		}
		matched += len(want)
		for _, one := range want {
			delayed += len(one.Delay)
			acts += len(one.Next)
			failed += len(one.Failed)
		}
	}
	t.Logf("%d Stages matched, %d bounds of delays, %d acts, %d failures", matched, delayed, acts, failed)
	if matched < cases()/2 || delayed < cases()/4 || acts < cases()/2 || failed == 0 {
		t.Error("too little was compared")
	}
}

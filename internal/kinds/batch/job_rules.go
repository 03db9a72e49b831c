package batch

import (
	"fmt"
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Limits of indexed jobs: their status lists indexes as text.
const (
	mostParallel      = 100_000
	manyCompletions   = 100_000
	parallelIfMany    = 10_000
	mostPolicyRules   = 20
	mostPolicyValues  = 255
	mostIndexesLength = 64 << 10
)

func indexed(spec object.Object) bool { return object.String(spec, "completionMode") == "Indexed" }

// generatedSelector requires exactly the labels and the selector that the server generates for a job.
func generatedSelector(val *rule.Validation, _ rule.Value) {
	spec, meta := object.Map(val.Obj, "spec"), object.Map(val.Obj, "metadata")
	selector := rule.LabelSelector(spec["selector"])
	if object.True(spec, "manualSelector") || selector == nil {
		return
	}
	uid, name := object.String(meta, "uid"), object.String(meta, "name")
	if uid == "" {
		val.Required(field.NewPath("metadata", "uid"), "")
	}
	want := [][2]string{{"controller-uid", uid}, {"job-name", name}, {batchv1.ControllerUidLabel, uid},
		{batchv1.JobNameLabel, name}}
	if val.Old != nil { // older jobs have only two labels
		was := object.Map(val.Old, "spec", "template", "metadata", "labels")
		if was[batchv1.ControllerUidLabel] == nil || was[batchv1.JobNameLabel] == nil {
			want = want[:2]
		}
	}
	own, expected := rule.StringMap(object.Map(spec, "template", "metadata")["labels"]), labels.Set{}
	path := field.NewPath("spec", "template", "metadata", "labels")
	for _, l := range want {
		expected[l[0]] = l[1]
		switch v, ok := own[l[0]]; {
		case !ok:
			val.Required(path.Key(l[0]), fmt.Sprintf("must be '%s'", l[1]))
		case v != l[1]:
			val.Invalid(path.Key(l[0]), own, fmt.Sprintf("must be '%s'", l[1]))
		}
	}
	if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && !s.Matches(expected) {
		val.Invalid(field.NewPath("spec", "selector"), selector, "`selector` not auto-generated")
	}
}

func jobSelector(val *rule.Validation, _ rule.Value) {
	spec := object.Map(val.Obj, "spec")
	if s, err := metav1.LabelSelectorAsSelector(rule.LabelSelector(spec["selector"])); err == nil {
		pod.CheckSelected(val, s, object.Map(spec, "template"), field.NewPath("spec", "template"))
	}
}

// podHostnames requires the names of indexed pods to be host names.
func podHostnames(val *rule.Validation, _ rule.Value) {
	spec, name := object.Map(val.Obj, "spec"), object.String(object.Map(val.Obj, "metadata"), "name")
	n, _ := object.Int(spec, "completions")
	if !indexed(spec) || n <= 0 {
		return
	}
	if last := fmt.Sprintf("%s-%d", name, n-1); len(validation.IsDNS1123Label(last)) > 0 {
		val.Invalid(field.NewPath("metadata", "name"), name, "will not able to create pod with invalid DNS label: "+
			last)
	}
}

func failedIndexes(val *rule.Validation, p rule.Value) {
	if p.Object()["maxFailedIndexes"] != nil && p.Object()["backoffLimitPerIndex"] == nil {
		val.Required(p.Path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
	}
}

func completionMode(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	completions, hasCompletions := object.Int(spec, "completions")
	parallel, _ := object.Int(spec, "parallelism")
	failed, hasFailed := object.Int(spec, "maxFailedIndexes")
	backoff, hasBackoff := object.Int(spec, "backoffLimitPerIndex")
	if mode, ok := spec["completionMode"]; !ok || mode == "NonIndexed" {
		if hasBackoff {
			val.Invalid(p.Path.Child("backoffLimitPerIndex"), backoff, "requires indexed completion mode")
		}
		if hasFailed {
			val.Invalid(p.Path.Child("maxFailedIndexes"), failed, "requires indexed completion mode")
		}
	}
	if !indexed(spec) {
		return
	}
	if !hasCompletions {
		val.Required(p.Path.Child("completions"), "when completion mode is Indexed")
	}
	if parallel > mostParallel {
		val.Invalid(p.Path.Child("parallelism"), parallel,
			fmt.Sprintf("must be less than or equal to %d when completion mode is Indexed", mostParallel))
	}
	if hasCompletions && hasFailed && failed > completions {
		val.Invalid(p.Path.Child("maxFailedIndexes"), failed, "must be less than or equal to completions")
	}
	if failed > mostParallel {
		val.Invalid(p.Path.Child("maxFailedIndexes"), failed,
			fmt.Sprintf("must be less than or equal to %d", mostParallel))
	}
	if completions <= manyCompletions || !hasBackoff {
		return
	}
	why := fmt.Sprintf(
		"must be less than or equal to %d when completions are above %d and used with backoff limit per index",
		parallelIfMany, manyCompletions)
	if !hasFailed {
		val.Required(p.Path.Child("maxFailedIndexes"),
			fmt.Sprintf("must be specified when completions is above %d", manyCompletions))
	}
	if parallel > parallelIfMany {
		val.Invalid(p.Path.Child("parallelism"), parallel, why)
	}
	if failed > parallelIfMany {
		val.Invalid(p.Path.Child("maxFailedIndexes"), failed, why)
	}
}

func replacementPolicy(val *rule.Validation, p rule.Value) {
	policy, ok := p.Object()["podReplacementPolicy"].(string)
	path := p.Path.Child("podReplacementPolicy")
	switch {
	case !ok:
	case p.Object()["podFailurePolicy"] != nil:
		if policy != "Failed" {
			val.Unsupported(path, policy, "Failed")
		}
	case policy != "Failed" && policy != "TerminatingOrFailed":
		val.Unsupported(path, policy, "Failed", "TerminatingOrFailed")
	}
}

func jobRestartPolicy(val *rule.Validation, p rule.Value) {
	path := p.Path.Child("template", "spec", "restartPolicy")
	switch policy := object.String(object.Map(p.Object(), "template", "spec"), "restartPolicy"); {
	case policy == "" || policy == "Always":
		val.Required(path, `valid values: "OnFailure", "Never"`)
	case policy != "OnFailure" && policy != "Never":
		val.Unsupported(path, policy, "OnFailure", "Never")
	case p.Object()["podFailurePolicy"] != nil && policy != "Never":
		val.Invalid(path, policy, `only "Never" is supported when podFailurePolicy is specified`)
	}
}

// failurePolicy validates the pod failure policy.
func failurePolicy(val *rule.Validation, p rule.Value) {
	policy := p.Object()
	if policy == nil {
		return
	}
	rules, path := rule.Objects(policy["rules"]), p.Path.Child("rules")
	if len(rules) > mostPolicyRules {
		val.Add(field.TooMany(path, len(rules), mostPolicyRules))
	}
	names := sets.Set[string]{}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range rule.Objects(object.Map(p.In, "template", "spec")[list]) {
			names.Insert(object.String(c, "name"))
		}
	}
	for i, r := range rules {
		failureRule(val, r, p.In, names, path.Index(i))
	}
}

func failureRule(val *rule.Validation, r, spec object.Object, names sets.Set[string], path *field.Path) {
	actions := []string{"Count", "FailIndex", "FailJob", "Ignore"}
	switch action, at := object.String(r, "action"), path.Child("action"); {
	case action == "":
		val.Required(at, fmt.Sprintf("valid values: %q", actions))
	case action == "FailIndex" && spec["backoffLimitPerIndex"] == nil:
		val.Invalid(at, action, "requires the backoffLimitPerIndex to be set")
	case !slices.Contains(actions, action):
		val.Unsupported(at, action, actions...)
	}
	codes, conditions := object.Map(r, "onExitCodes"), rule.Objects(r["onPodConditions"])
	if codes != nil {
		exitCodes(val, codes, names, path.Child("onExitCodes"))
	}
	if len(conditions) > mostPolicyRules {
		val.Add(field.TooMany(path.Child("onPodConditions"), len(conditions), mostPolicyRules))
	}
	for i, c := range conditions {
		at, states := path.Child("onPodConditions").Index(i), []string{"False", "True", "Unknown"}
		val.Invalids(at.Child("type"), object.String(c, "type"), validation.IsQualifiedName(object.String(c, "type")))
		named(val, object.String(c, "status"), states, at.Child("status"))
	}
	switch {
	case codes != nil && len(conditions) > 0:
		val.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported")
	case codes == nil && len(conditions) == 0:
		val.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required")
	}
}

// named requires one of the values, and lists them if there is none.
func named(val *rule.Validation, s string, values []string, path *field.Path) {
	if s == "" {
		val.Required(path, fmt.Sprintf("valid values: %q", values))
	} else if !slices.Contains(values, s) {
		val.Unsupported(path, s, values...)
	}
}

func exitCodes(val *rule.Validation, r object.Object, names sets.Set[string], path *field.Path) {
	op := object.String(r, "operator")
	named(val, op, []string{"In", "NotIn"}, path.Child("operator"))
	if name, ok := r["containerName"].(string); ok && !names.Has(name) {
		val.Invalid(path.Child("containerName"), name,
			"must be one of the container or initContainer names in the pod template")
	}
	values, _ := r["values"].([]any)
	at := path.Child("values")
	if len(values) == 0 {
		val.Invalid(at, r["values"], "at least one value is required")
	} else if len(values) > mostPolicyValues {
		val.Add(field.TooMany(at, len(values), mostPolicyValues))
	}
	ordered, last, seen := true, int64(math.MinInt64), map[int64]bool{}
	for i, v := range values {
		n, _ := v.(int64)
		if op == "In" && n == 0 {
			val.Invalid(at.Index(i), n, "must not be 0 for the In operator")
		}
		if seen[n] {
			val.Duplicate(at.Index(i), n)
		}
		seen[n], ordered, last = true, ordered && last <= n, n
	}
	if !ordered {
		val.Invalid(at, values, "must be ordered")
	}
}

// successPolicy validates when a job is done before all of its pods are.
func successPolicy(val *rule.Validation, p rule.Value) {
	policy := p.Object()
	if policy == nil {
		return
	}
	if !indexed(p.In) {
		val.Invalid(p.Path, policy, "requires indexed completion mode")
		return
	}
	rules, path := rule.Objects(policy["rules"]), p.Path.Child("rules")
	if len(rules) == 0 {
		val.Required(path, "at least one rules must be specified when the successPolicy is specified")
	}
	if len(rules) > mostPolicyRules {
		val.Add(field.TooMany(path, len(rules), mostPolicyRules))
	}
	completions, ok := object.Int(p.In, "completions")
	if !ok {
		return // reported elsewhere
	}
	for i, r := range rules {
		successRule(val, r, completions, path.Index(i))
	}
}

func successRule(val *rule.Validation, r object.Object, completions int64, path *field.Path) {
	count, hasCount := object.Int(r, "succeededCount")
	indexes, hasIndexes := r["succeededIndexes"].(string)
	if !hasCount && !hasIndexes {
		val.Required(path, "at least one of succeededCount or succeededIndexes must be specified")
	}
	total := int64(0)
	if at := path.Child("succeededIndexes"); hasIndexes {
		if len(indexes) > mostIndexesLength {
			val.Add(field.TooLong(at, "", mostIndexesLength))
		}
		var err error
		if total, err = countIndexes(indexes, completions); err != nil {
			val.Invalid(at, indexes, "error parsing succeededIndexes: "+err.Error())
		}
	}
	if !hasCount {
		return
	}
	at := path.Child("succeededCount")
	if count < 0 {
		val.Invalid(at, count, "must be greater than or equal to 0")
	}
	if count > completions {
		val.Invalid(at, count,
			fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions))
	}
	if hasIndexes && count > total {
		val.Invalid(at, count,
			fmt.Sprintf(
				"must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)",
				total))
	}
}

// jobUpdate allows changes of a job's size, and of its template while it is suspended without pods.
func jobUpdate(val *rule.Validation, _ rule.Value) {
	spec, was, path := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec"), field.NewPath("spec")
	completions, _ := object.Int(spec, "completions")
	parallel, _ := object.Int(spec, "parallelism")
	switch {
	case rule.Equivalent(spec["completions"], was["completions"]):
	case !indexed(spec):
		val.Invalid(path.Child("completions"), spec["completions"], "field is immutable")
	case spec["completions"] != nil && completions != parallel:
		val.Invalid(path.Child("completions"), completions, "can only be modified in tandem with spec.parallelism")
	}
	if !rule.Equivalent(spec["selector"], was["selector"]) {
		val.Invalid(path.Child("selector"), rule.LabelSelector(spec["selector"]), "field is immutable")
	}
	templateUpdate(val, spec, was, path)
	for _, name := range []string{"completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy",
		"successPolicy"} {
		if !rule.Equivalent(spec[name], was[name]) {
			val.Invalid(path.Child(name), spec[name], "field is immutable")
		}
	}
}

func templateUpdate(val *rule.Validation, spec, was object.Object, path *field.Path) {
	status := object.Map(val.Old, "status")
	active, _ := object.Int(status, "active")
	unstarted := object.True(was, "suspend") && status["startTime"] == nil
	open := (unstarted || object.True(was, "suspend") && jobIs(status, "Suspended")) && active == 0
	template, old := object.Map(spec, "template"), runtime.DeepCopyJSON(object.Map(was, "template"))
	placed := open
	if val.Lacks("MutableSchedulingDirectivesForSuspendedJobs") {
		placed = unstarted
	}
	if placed {
		freeScheduling(old, template)
	}
	if !open || val.Lacks("MutablePodResourcesForSuspendedJobs") {
		if !rule.Equivalent(template, old) {
			val.Invalid(path.Child("template"), template, "field is immutable")
		}
		return
	}
	own, oldSpec := object.Map(template, "spec"), object.Map(old, "spec")
	for _, list := range []string{"containers", "initContainers"} {
		now, before := rule.Objects(own[list]), rule.Objects(oldSpec[list])
		for i := range now {
			if len(now) == len(before) && object.String(now[i], "name") == object.String(before[i], "name") {
				pod.Keep(before[i], now[i], "resources")
			}
		}
	}
	if !rule.Equivalent(own, oldSpec) {
		val.Invalid(path.Child("template.spec"), own, "field is immutable")
	}
}

// freeScheduling copies the scheduling fields of template to old.
func freeScheduling(old, template object.Object) {
	spec, was := object.Map(template, "spec"), object.Map(old, "spec")
	affinity, before := object.Map(spec, "affinity"), object.Map(was, "affinity")
	switch {
	case affinity == nil && before != nil:
		delete(before, "nodeAffinity")
		if len(before) == 0 {
			delete(was, "affinity")
		}
	case affinity != nil && before == nil:
		was["affinity"] = object.Object{}
		pod.Keep(object.Map(was, "affinity"), affinity, "nodeAffinity")
	case affinity != nil:
		pod.Keep(before, affinity, "nodeAffinity")
	}
	for _, name := range []string{"nodeSelector", "tolerations", "schedulingGates"} {
		pod.Keep(was, spec, name)
	}
	meta, metaWas := object.Map(template, "metadata"), object.Map(old, "metadata")
	if metaWas == nil {
		metaWas = object.Object{}
		old["metadata"] = metaWas
	}
	for _, name := range []string{"annotations", "labels"} {
		pod.Keep(metaWas, meta, name)
	}
}

package check

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func jobFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"generatedSelector": generatedSelector,
		"jobSelector":       jobSelector,
		"podHostnames":      podHostnames,
		"failedIndexes":     failedIndexes,
		"completionMode":    completionMode,
		"failurePolicy":     failurePolicy,
		"successPolicy":     successPolicy,
		"replacementPolicy": replacementPolicy,
		"jobRestartPolicy":  jobRestartPolicy,
		"jobUpdate":         jobUpdate,
		"jobStatus":         jobStatus,
		"cronJobName":       cronJobName,
		"schedule":          schedule,
		"timeZone":          timeZone,
		"jobTemplate":       jobTemplate,
	}
}

// Limits of jobs whose pods have indexes: their indexes stand in status as text.
const (
	mostParallel      = 100_000
	manyCompletions   = 100_000
	parallelIfMany    = 10_000
	mostPolicyRules   = 20
	mostPolicyValues  = 255
	mostIndexesLength = 64 << 10
)

func indexed(spec object) bool { return text1(spec, "completionMode") == "Indexed" }

// generatedSelector wants the labels and the selector that the server has given a job to be there, and nothing else.
func generatedSelector(j *judgement, _ place) {
	spec, meta := inner(j.obj, "spec"), inner(j.obj, "metadata")
	selector := labelSelector(spec["selector"])
	if truth(spec, "manualSelector") || selector == nil {
		return
	}
	uid, name := text1(meta, "uid"), text1(meta, "name")
	if uid == "" {
		j.required(field.NewPath("metadata", "uid"), "")
	}
	want := [][2]string{{"controller-uid", uid}, {"job-name", name}, {batchv1.ControllerUidLabel, uid},
		{batchv1.JobNameLabel, name}}
	if j.old != nil { // jobs of before have two labels only
		was := inner(j.old, "spec", "template", "metadata", "labels")
		if was[batchv1.ControllerUidLabel] == nil || was[batchv1.JobNameLabel] == nil {
			want = want[:2]
		}
	}
	own, expected := pairs(inner(spec, "template", "metadata")["labels"]), labels.Set{}
	path := field.NewPath("spec", "template", "metadata", "labels")
	for _, l := range want {
		expected[l[0]] = l[1]
		switch v, ok := own[l[0]]; {
		case !ok:
			j.required(path.Key(l[0]), fmt.Sprintf("must be '%s'", l[1]))
		case v != l[1]:
			j.invalid(path.Key(l[0]), own, fmt.Sprintf("must be '%s'", l[1]))
		}
	}
	if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && !s.Matches(expected) {
		j.invalid(field.NewPath("spec", "selector"), selector, "`selector` not auto-generated")
	}
}

func jobSelector(j *judgement, _ place) {
	spec := inner(j.obj, "spec")
	if s, err := metav1.LabelSelectorAsSelector(labelSelector(spec["selector"])); err == nil {
		j.selected(s, inner(spec, "template"), field.NewPath("spec", "template"))
	}
}

// podHostnames wants the names that pods with indexes get to be host names.
func podHostnames(j *judgement, _ place) {
	spec, name := inner(j.obj, "spec"), text1(inner(j.obj, "metadata"), "name")
	n, _ := number(spec, "completions")
	if !indexed(spec) || n <= 0 {
		return
	}
	if last := fmt.Sprintf("%s-%d", name, n-1); len(validation.IsDNS1123Label(last)) > 0 {
		j.invalid(field.NewPath("metadata", "name"), name, "will not able to create pod with invalid DNS label: "+last)
	}
}

func failedIndexes(j *judgement, p place) {
	if p.object()["maxFailedIndexes"] != nil && p.object()["backoffLimitPerIndex"] == nil {
		j.required(p.path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
	}
}

func completionMode(j *judgement, p place) {
	spec := p.object()
	completions, hasCompletions := number(spec, "completions")
	parallel, _ := number(spec, "parallelism")
	failed, hasFailed := number(spec, "maxFailedIndexes")
	backoff, hasBackoff := number(spec, "backoffLimitPerIndex")
	if mode, ok := spec["completionMode"]; !ok || mode == "NonIndexed" {
		if hasBackoff {
			j.invalid(p.path.Child("backoffLimitPerIndex"), backoff, "requires indexed completion mode")
		}
		if hasFailed {
			j.invalid(p.path.Child("maxFailedIndexes"), failed, "requires indexed completion mode")
		}
	}
	if !indexed(spec) {
		return
	}
	if !hasCompletions {
		j.required(p.path.Child("completions"), "when completion mode is Indexed")
	}
	if parallel > mostParallel {
		j.invalid(p.path.Child("parallelism"), parallel,
			fmt.Sprintf("must be less than or equal to %d when completion mode is Indexed", mostParallel))
	}
	if hasCompletions && hasFailed && failed > completions {
		j.invalid(p.path.Child("maxFailedIndexes"), failed, "must be less than or equal to completions")
	}
	if failed > mostParallel {
		j.invalid(p.path.Child("maxFailedIndexes"), failed,
			fmt.Sprintf("must be less than or equal to %d", mostParallel))
	}
	if completions <= manyCompletions || !hasBackoff {
		return
	}
	why := fmt.Sprintf(
		"must be less than or equal to %d when completions are above %d and used with backoff limit per index",
		parallelIfMany, manyCompletions)
	if !hasFailed {
		j.required(p.path.Child("maxFailedIndexes"),
			fmt.Sprintf("must be specified when completions is above %d", manyCompletions))
	}
	if parallel > parallelIfMany {
		j.invalid(p.path.Child("parallelism"), parallel, why)
	}
	if failed > parallelIfMany {
		j.invalid(p.path.Child("maxFailedIndexes"), failed, why)
	}
}

func replacementPolicy(j *judgement, p place) {
	policy, ok := p.object()["podReplacementPolicy"].(string)
	path := p.path.Child("podReplacementPolicy")
	switch {
	case !ok:
	case p.object()["podFailurePolicy"] != nil:
		if policy != "Failed" {
			j.unsupported(path, policy, "Failed")
		}
	case policy != "Failed" && policy != "TerminatingOrFailed":
		j.unsupported(path, policy, "Failed", "TerminatingOrFailed")
	}
}

func jobRestartPolicy(j *judgement, p place) {
	path := p.path.Child("template", "spec", "restartPolicy")
	switch policy := text1(inner(p.object(), "template", "spec"), "restartPolicy"); {
	case policy == "" || policy == "Always":
		j.required(path, `valid values: "OnFailure", "Never"`)
	case policy != "OnFailure" && policy != "Never":
		j.unsupported(path, policy, "OnFailure", "Never")
	case p.object()["podFailurePolicy"] != nil && policy != "Never":
		j.invalid(path, policy, `only "Never" is supported when podFailurePolicy is specified`)
	}
}

// failurePolicy judges what is done about pods that fail.
func failurePolicy(j *judgement, p place) {
	policy := p.object()
	if policy == nil {
		return
	}
	rules, path := objects(policy["rules"]), p.path.Child("rules")
	if len(rules) > mostPolicyRules {
		j.add(field.TooMany(path, len(rules), mostPolicyRules))
	}
	var names []string
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range objects(inner(p.in, "template", "spec")[list]) {
			names = append(names, text1(c, "name"))
		}
	}
	for i, r := range rules {
		j.failureRule(r, p.in, names, path.Index(i))
	}
}

func (j *judgement) failureRule(r, spec object, names []string, path *field.Path) {
	actions := []string{"Count", "FailIndex", "FailJob", "Ignore"}
	switch action, at := text1(r, "action"), path.Child("action"); {
	case action == "":
		j.required(at, fmt.Sprintf("valid values: %q", actions))
	case action == "FailIndex" && spec["backoffLimitPerIndex"] == nil:
		j.invalid(at, action, "requires the backoffLimitPerIndex to be set")
	case !slices.Contains(actions, action):
		j.unsupported(at, action, actions...)
	}
	codes, conditions := inner(r, "onExitCodes"), objects(r["onPodConditions"])
	if codes != nil {
		j.exitCodes(codes, names, path.Child("onExitCodes"))
	}
	if len(conditions) > mostPolicyRules {
		j.add(field.TooMany(path.Child("onPodConditions"), len(conditions), mostPolicyRules))
	}
	for i, c := range conditions {
		at, states := path.Child("onPodConditions").Index(i), []string{"False", "True", "Unknown"}
		j.invalids(at.Child("type"), text1(c, "type"), validation.IsQualifiedName(text1(c, "type")))
		j.named(text1(c, "status"), states, at.Child("status"))
	}
	switch {
	case codes != nil && len(conditions) > 0:
		j.invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported")
	case codes == nil && len(conditions) == 0:
		j.invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required")
	}
}

// named wants one of the values, and names them if there is none.
func (j *judgement) named(s string, values []string, path *field.Path) {
	if s == "" {
		j.required(path, fmt.Sprintf("valid values: %q", values))
	} else if !slices.Contains(values, s) {
		j.unsupported(path, s, values...)
	}
}

func (j *judgement) exitCodes(r object, names []string, path *field.Path) {
	op := text1(r, "operator")
	j.named(op, []string{"In", "NotIn"}, path.Child("operator"))
	if name, ok := r["containerName"].(string); ok && !slices.Contains(names, name) {
		j.invalid(path.Child("containerName"), name,
			"must be one of the container or initContainer names in the pod template")
	}
	values, _ := r["values"].([]any)
	at := path.Child("values")
	if len(values) == 0 {
		j.invalid(at, r["values"], "at least one value is required")
	} else if len(values) > mostPolicyValues {
		j.add(field.TooMany(at, len(values), mostPolicyValues))
	}
	ordered, last, seen := true, int64(math.MinInt64), map[int64]bool{}
	for i, v := range values {
		n, _ := v.(int64)
		if op == "In" && n == 0 {
			j.invalid(at.Index(i), n, "must not be 0 for the In operator")
		}
		if seen[n] {
			j.duplicate(at.Index(i), n)
		}
		seen[n], ordered, last = true, ordered && last <= n, n
	}
	if !ordered {
		j.invalid(at, values, "must be ordered")
	}
}

// successPolicy judges when a job is done before all of its pods are.
func successPolicy(j *judgement, p place) {
	policy := p.object()
	if policy == nil {
		return
	}
	if !indexed(p.in) {
		j.invalid(p.path, policy, "requires indexed completion mode")
		return
	}
	rules, path := objects(policy["rules"]), p.path.Child("rules")
	if len(rules) == 0 {
		j.required(path, "at least one rules must be specified when the successPolicy is specified")
	}
	if len(rules) > mostPolicyRules {
		j.add(field.TooMany(path, len(rules), mostPolicyRules))
	}
	completions, ok := number(p.in, "completions")
	if !ok {
		return // which is said elsewhere
	}
	for i, r := range rules {
		j.successRule(r, completions, path.Index(i))
	}
}

func (j *judgement) successRule(r object, completions int64, path *field.Path) {
	count, hasCount := number(r, "succeededCount")
	indexes, hasIndexes := r["succeededIndexes"].(string)
	if !hasCount && !hasIndexes {
		j.required(path, "at least one of succeededCount or succeededIndexes must be specified")
	}
	total := int64(0)
	if at := path.Child("succeededIndexes"); hasIndexes {
		if len(indexes) > mostIndexesLength {
			j.add(field.TooLong(at, "", mostIndexesLength))
		}
		var err error
		if total, err = countIndexes(indexes, completions); err != nil {
			j.invalid(at, indexes, "error parsing succeededIndexes: "+err.Error())
		}
	}
	if !hasCount {
		return
	}
	at := path.Child("succeededCount")
	if count < 0 {
		j.invalid(at, count, "must be greater than or equal to 0")
	}
	if count > completions {
		j.invalid(at, count,
			fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions))
	}
	if hasIndexes && count > total {
		j.invalid(at, count,
			fmt.Sprintf(
				"must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)",
				total))
	}
}

// jobUpdate lets a job's size change, and its pods as long as it is suspended and has none.
func jobUpdate(j *judgement, _ place) {
	spec, was, path := inner(j.obj, "spec"), inner(j.old, "spec"), field.NewPath("spec")
	completions, _ := number(spec, "completions")
	parallel, _ := number(spec, "parallelism")
	switch {
	case same(spec["completions"], was["completions"]):
	case !indexed(spec):
		j.invalid(path.Child("completions"), spec["completions"], "field is immutable")
	case spec["completions"] != nil && completions != parallel:
		j.invalid(path.Child("completions"), completions, "can only be modified in tandem with spec.parallelism")
	}
	if !same(spec["selector"], was["selector"]) {
		j.invalid(path.Child("selector"), labelSelector(spec["selector"]), "field is immutable")
	}
	j.templateUpdate(spec, was, path)
	for _, name := range []string{"completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy",
		"successPolicy"} {
		if !same(spec[name], was[name]) {
			j.invalid(path.Child(name), spec[name], "field is immutable")
		}
	}
}

func (j *judgement) templateUpdate(spec, was object, path *field.Path) {
	status := inner(j.old, "status")
	active, _ := number(status, "active")
	open := truth(was, "suspend") && (status["startTime"] == nil || jobIs(status, "Suspended")) && active == 0
	template, old := inner(spec, "template"), runtime.DeepCopyJSON(inner(was, "template"))
	if open {
		freeScheduling(old, template)
	}
	if !truth(was, "suspend") || !open {
		if !same(template, old) {
			j.invalid(path.Child("template"), template, "field is immutable")
		}
		return
	}
	own, oldSpec := inner(template, "spec"), inner(old, "spec")
	for _, list := range []string{"containers", "initContainers"} {
		now, before := objects(own[list]), objects(oldSpec[list])
		for i := range now {
			if len(now) == len(before) && text1(now[i], "name") == text1(before[i], "name") {
				keep(before[i], now[i], "resources")
			}
		}
	}
	if !same(own, oldSpec) {
		j.invalid(path.Child("template.spec"), own, "field is immutable")
	}
}

// freeScheduling makes what says where pods run in old what it is in template.
func freeScheduling(old, template object) {
	spec, was := inner(template, "spec"), inner(old, "spec")
	affinity, before := inner(spec, "affinity"), inner(was, "affinity")
	switch {
	case affinity == nil && before != nil:
		delete(before, "nodeAffinity")
		if len(before) == 0 {
			delete(was, "affinity")
		}
	case affinity != nil && before == nil:
		was["affinity"] = object{}
		keep(inner(was, "affinity"), affinity, "nodeAffinity")
	case affinity != nil:
		keep(before, affinity, "nodeAffinity")
	}
	for _, name := range []string{"nodeSelector", "tolerations", "schedulingGates"} {
		keep(was, spec, name)
	}
	meta, metaWas := inner(template, "metadata"), inner(old, "metadata")
	if metaWas == nil {
		metaWas = object{}
		old["metadata"] = metaWas
	}
	for _, name := range []string{"annotations", "labels"} {
		keep(metaWas, meta, name)
	}
}

func cronJobName(j *judgement, _ place) {
	if name := text1(inner(j.obj, "metadata"), "name"); len(name) > 52 { // a job's has 11 more
		j.invalid(field.NewPath("metadata", "name"), name, "must be no more than 52 characters")
	}
}

func schedule(j *judgement, p place) {
	s, path := text1(p.object(), "schedule"), p.path.Child("schedule")
	if s == "" {
		return
	}
	if err := parseSchedule(s); err != nil {
		j.invalid(path, s, err.Error())
	}
	had := j.old != nil && strings.Contains(text1(inner(j.old, "spec"), "schedule"), "TZ")
	switch zoned := strings.Contains(s, "TZ"); {
	case zoned && !had:
		j.invalid(path, s, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
	case zoned && p.object()["timeZone"] != nil:
		j.invalid(path, s, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
	}
}

// parseSchedule reads a schedule; the library panics at some that are wrong.
func parseSchedule(s string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid schedule format: %v", r)
		}
	}()
	_, err = cron.ParseStandard(s)
	return err
}

// zonePart is a part of the name of a time zone.
var zonePart = regexp.MustCompile(`^[A-Za-z\.\-_0-9+]{1,14}$`)

func timeZone(j *judgement, p place) {
	zone, ok := p.value.(string)
	if !ok || j.old != nil && p.old == p.value {
		return
	}
	if zone == "" {
		j.invalid(p.path, zone, "timeZone must be nil or non-empty string")
		return
	}
	for part := range strings.SplitSeq(zone, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !zonePart.MatchString(part) {
			j.invalid(p.path, zone, "unknown time zone "+zone)
			return
		}
	}
	if strings.EqualFold(zone, "Local") {
		j.invalid(p.path, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
	}
	if _, err := time.LoadLocation(zone); err != nil {
		j.invalid(p.path, zone, err.Error())
	}
}

// jobTemplate: the jobs of a CronJob get their selectors from the server.
func jobTemplate(j *judgement, p place) {
	spec := p.object()
	if s := labelSelector(spec["selector"]); s != nil {
		j.invalid(p.path.Child("selector"), s, "`selector` will be auto-generated")
	}
	if truth(spec, "manualSelector") {
		j.unsupported(p.path.Child("manualSelector"), true, "nil", "false")
	}
}

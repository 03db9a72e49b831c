package batch

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// jobIs reports whether a condition of a job is true.
func jobIs(status object.Object, kind string) bool {
	for _, c := range rule.Objects(status["conditions"]) {
		if object.String(c, "type") == kind && object.String(c, "status") == "True" {
			return true
		}
	}
	return false
}

func finished(status object.Object) bool { return jobIs(status, "Complete") || jobIs(status, "Failed") }

// jobStatus validates the status from a job controller. Most rules apply only to changed fields, so that other fields
// of an invalid status can still be changed.
func jobStatus(val *rule.Validation, _ rule.Value) {
	s := jobChange{
		Validation: val, spec: object.Map(val.Obj, "spec"), now: object.Map(val.Obj, "status"),
		was:  object.Map(val.Old, "status"),
		path: field.NewPath("status"),
	}
	val.Block("JobStatus", s.now, nil, s.path)
	s.uncounted()
	if val.Lacks("JobManagedBy") { // then only Kubernetes' own controller writes it
		s.succeeds(val.Lacks("JobPodReplacementPolicy"))
		s.goesOn()
		return
	}
	s.ends()
	s.times()
	s.indexes()
	s.counts()
}

type jobChange struct {
	*rule.Validation
	spec, now, was object.Object
	path           *field.Path
}

// changed reports whether one of the fields has changed.
func (s *jobChange) changed(names ...string) bool {
	for _, name := range names {
		if !rule.Equivalent(s.now[name], s.was[name]) {
			return true
		}
	}
	return false
}

// turned reports whether one of the conditions has changed.
func (s *jobChange) turned(kinds ...string) bool {
	for _, kind := range kinds {
		if jobIs(s.now, kind) != jobIs(s.was, kind) {
			return true
		}
	}
	return false
}

func (s *jobChange) conditions(detail string) {
	s.Invalid(s.path.Child("conditions"), field.OmitValueType{}, detail)
}

// uncounted requires each pod to be listed as uncounted only once.
func (s *jobChange) uncounted() {
	pods, seen := object.Map(s.now, "uncountedTerminatedPods"), map[string]bool{}
	for _, list := range []string{"succeeded", "failed"} {
		for i, uid := range rule.Strings(pods[list]) {
			at := s.path.Child("uncountedTerminatedPods", list).Index(i)
			switch {
			case uid == "":
				s.Invalid(at, uid, "must not be empty")
			case seen[uid]:
				s.Duplicate(at, uid)
			}
			seen[uid] = true
		}
	}
}

// ends validates the end of a job: there is one end, announced before, and permanent.
func (s *jobChange) ends() {
	is := func(kind string) bool { return jobIs(s.now, kind) }
	complete, failed := is("Complete"), is("Failed")
	success, failure := is("SuccessCriteriaMet"), is("FailureTarget")
	if complete && failed && s.turned("Complete", "Failed") {
		s.conditions("cannot set Complete=True and Failed=true conditions")
	}
	if complete && failure && s.turned("Complete", "FailureTarget") {
		s.conditions("cannot set Complete=True and FailureTarget=true conditions")
	}
	if failed && !failure && (s.turned("Failed") || s.changed("failedIndexes")) {
		s.conditions("cannot set Failed=True condition without the FailureTarget=true condition")
	}
	if complete && !success && s.turned("Complete", "SuccessCriteriaMet") {
		s.conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
	}
	s.succeeds(false)
	for _, kind := range []string{"Failed", "Complete", "FailureTarget"} {
		if jobIs(s.was, kind) && !is(kind) {
			s.conditions(fmt.Sprintf("cannot disable the terminal %s=True condition", kind))
		}
	}
	s.goesOn()
}

func (s *jobChange) times() {
	start, end := object.String(s.now, "startTime"), object.String(s.now, "completionTime")
	complete := jobIs(s.now, "Complete")
	at := s.path.Child("completionTime")
	if s.turned("Complete") || s.changed("completionTime") {
		if end != "" && !complete {
			s.Invalid(at, end, "cannot set completionTime when there is no Complete=True condition")
		}
		if end == "" && complete {
			s.Required(at, "completionTime is required for Complete jobs")
		}
	}
	if s.changed("startTime", "completionTime") && start != "" && end != "" && timeOf(end).Before(timeOf(start)) {
		s.Invalid(at, end, "must be equal to or after `startTime`")
	}
	none, _ := object.Int(s.spec, "completions")
	idle := object.True(s.spec, "suspend") && s.spec["completions"] != nil && none == 0
	finishedNow := finished(s.now)
	if (finishedNow != finished(s.was) || s.changed("startTime")) && !idle && start == "" && finishedNow {
		s.Required(s.path.Child("startTime"), "startTime is required for finished job")
	}
	if was := object.String(s.was, "completionTime"); end != "" && was != "" && end != was {
		s.Invalid(at, end, "field is immutable")
	}
	resumed := jobIs(s.was, "Suspended") && s.suspensionEnded()
	if s.changed("startTime") && !resumed && object.String(s.was, "startTime") != "" &&
		!object.True(s.spec, "suspend") {
		s.Invalid(s.path.Child("startTime"), s.now["startTime"], "field is immutable for unsuspended job once set")
	}
}

func timeOf(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}

func (s *jobChange) suspensionEnded() bool {
	for _, c := range rule.Objects(s.now["conditions"]) {
		if object.String(c, "type") == "Suspended" && object.String(c, "status") == "False" {
			return true
		}
	}
	return false
}

func (s *jobChange) indexes() {
	completions, ok := object.Int(s.spec, "completions")
	done := object.String(s.now, "completedIndexes")
	lost, hasLost := s.now["failedIndexes"].(string)
	doneChanged, lostChanged := s.changed("completedIndexes"), s.changed("failedIndexes")
	if doneChanged && ok {
		if _, err := countIndexes(done, completions); err != nil {
			s.Invalid(s.path.Child("completedIndexes"), done, "error parsing completedIndexes: "+err.Error())
		}
	}
	limited := s.spec["backoffLimitPerIndex"] != nil
	if lostChanged && ok && limited && hasLost {
		if _, err := countIndexes(lost, completions); err != nil {
			s.Invalid(s.path.Child("failedIndexes"), lost, "error parsing failedIndexes: "+err.Error())
		}
	}
	if doneChanged && done != "" && !indexed(s.spec) {
		s.Invalid(s.path.Child("completedIndexes"), done,
			"cannot set non-empty completedIndexes when non-indexed completion mode")
	}
	if lostChanged && !limited && hasLost {
		s.Invalid(s.path.Child("failedIndexes"), lost,
			"cannot set non-null failedIndexes when backoffLimitPerIndex is null")
	}
	if (lostChanged || doneChanged) && ok && hasLost {
		if at, both := overlap(done, lost, completions); both {
			s.Invalid(s.path.Child("failedIndexes"), lost,
				fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", at))
		}
	}
}

func (s *jobChange) counts() {
	n := func(name string) int64 { n, _ := object.Int(s.now, name); return n }
	before := func(name string) int64 { n, _ := object.Int(s.was, name); return n }
	done := finished(s.now)
	ended := done != finished(s.was)
	if (ended || s.changed("active")) && n("active") > 0 && done {
		s.Invalid(s.path.Child("active"), n("active"), "active>0 is invalid for finished job")
	}
	pods := object.Map(s.now, "uncountedTerminatedPods")
	if (ended || s.changed("uncountedTerminatedPods")) && done &&
		!(rule.IsEmpty(pods["succeeded"]) && rule.IsEmpty(pods["failed"])) {
		s.Invalid(s.path.Child("uncountedTerminatedPods"), pods, "must be empty for finished job")
	}
	if (ended || s.changed("terminating")) && n("terminating") > 0 && done {
		s.Invalid(s.path.Child("terminating"), n("terminating"), "terminating>0 is invalid for finished job")
	}
	if s.changed("ready", "active") && n("ready") > n("active") {
		s.Invalid(s.path.Child("ready"), n("ready"), "cannot set more ready pods than active")
	}
	if n("failed") < before("failed") {
		s.Invalid(s.path.Child("failed"), n("failed"), "cannot decrease the failed counter")
	}
	if elastic := indexed(s.spec) && rule.Equivalent(s.spec["completions"], s.spec["parallelism"]); !elastic &&
		n("succeeded") < before("succeeded") {
		s.Invalid(s.path.Child("succeeded"), n("succeeded"), "cannot decrease the succeeded counter")
	}
}

// countIndexes counts the indexes in a text like "1,3-5,7", which must be ascending and below limit.
func countIndexes(s string, limit int64) (total int64, err error) {
	if s == "" {
		return 0, nil
	}
	last := int64(-1)
	for part := range strings.SplitSeq(s, ",") {
		from, to, err := interval(part, limit)
		if err != nil {
			return 0, err
		}
		if last >= from && total > 0 {
			return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, from)
		}
		total += to - from + 1
		last = to
	}
	return total, nil
}

func interval(s string, limit int64) (from, to int64, err error) {
	ends := strings.Split(s, "-")
	if len(ends) > 2 {
		return 0, 0,
			fmt.Errorf(
				"the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", s)
	}
	var n [2]int64
	for i, end := range ends {
		v, err := strconv.Atoi(end)
		if err != nil {
			return 0, 0, fmt.Errorf("cannot convert string to integer for index: %q", end)
		}
		if int64(v) >= limit {
			return 0, 0, fmt.Errorf("too large index: %q", end)
		}
		n[i] = int64(v)
	}
	if len(ends) == 1 {
		return n[0], n[0], nil
	}
	if n[0] >= n[1] {
		return 0, 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", n[0], n[1])
	}
	return n[0], n[1], nil
}

// overlap returns an index that is in both texts. It skips unreadable parts.
func overlap(a, b string, limit int64) (at int64, both bool) {
	if a == "" || b == "" {
		return 0, false
	}
	for x := range strings.SplitSeq(a, ",") {
		for y := range strings.SplitSeq(b, ",") {
			f, t, err := interval(x, limit)
			g, u, err2 := interval(y, limit)
			if err == nil && err2 == nil && f <= u && g <= t {
				return max(f, g), true
			}
		}
	}
	return 0, false
}

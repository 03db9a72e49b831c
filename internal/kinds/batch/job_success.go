package batch

// succeeds validates that a job meets its criteria of success, and how: in an earlier release by policies alone.
func (s *jobChange) succeeds(earlier bool) {
	success := jobIs(s.now, "SuccessCriteriaMet")
	byPolicy := earlier && success && !jobIs(s.was, "SuccessCriteriaMet")
	if byPolicy && !indexed(s.spec) {
		s.conditions("cannot set SuccessCriteriaMet to NonIndexed Job")
	}
	if success && jobIs(s.now, "Failed") {
		s.conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions")
	}
	if success && jobIs(s.now, "FailureTarget") {
		s.conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
	}
	if byPolicy && s.spec["successPolicy"] == nil {
		s.conditions("cannot set SuccessCriteriaMet=True for Job without SuccessPolicy")
	}
	if s.spec["successPolicy"] != nil && !success && jobIs(s.now, "Complete") {
		s.conditions("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
	}
}

// goesOn validates that SuccessCriteriaMet precedes Complete, and stays.
func (s *jobChange) goesOn() {
	success := jobIs(s.now, "SuccessCriteriaMet")
	if jobIs(s.was, "SuccessCriteriaMet") && !success {
		s.conditions("cannot disable the SuccessCriteriaMet=True condition")
	}
	if jobIs(s.was, "Complete") && !jobIs(s.was, "SuccessCriteriaMet") && success {
		s.conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
	}
}

package check

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// exception is a rule that an object may go on breaking if it did so before the update: an older Kubernetes has
// accepted it, and whoever changes something else must be able to.
//
// Source: GetValidationOptionsFromPodSpecAndMeta of pkg/api/pod and its like in pkg/registry.
type exception string

const brokenPages exception = "huge pages come in whole pages"
const affinityValues exception = "affinity to pods selects by possible labels"
const nodeValues exception = "affinity to nodes selects by possible labels"
const spreadSelector exception = "the selector of a spread constraint is valid"
const keysBeside exception = "the keys of a spread constraint add to its selector"
const tokenPath exception = "a token is written below its volume"
const hostSysctl exception = "who uses a namespace of the host leaves its parameters alone"
const ownUsersDevices exception = "who has users of its own has no devices"
const initRestart exception = "a resize does not restart a container that has ended"
const wholeCost exception = "the cost of a deletion is a number"
const comparing exception = "tolerations do not compare"
const selectorValues exception = "a selector selects by possible labels"
const tlsSecretName exception = "the name of a secret is one"
const wildcardBackends exception = "the rules of a host with an asterisk are valid"

// excused tells whether an object that breaks a rule did so before the update. Only then, which is rare, is the old
// object judged too.
func (j *judgement) excused(rule exception) bool {
	if j.breaks == nil {
		j.breaks = map[exception]bool{}
	}
	j.breaks[rule] = true
	return j.was(rule)
}

// was tells whether the old object broke a rule.
func (j *judgement) was(rule exception) bool {
	if j.old == nil {
		return false
	}
	if j.broke == nil {
		past := judgement{blocks: j.blocks, kind: j.kind, obj: j.old, breaks: map[exception]bool{}}
		past.block(j.kind, j.old, nil, nil)
		j.broke = past.breaks
	}
	return j.broke[rule]
}

// selects judges a selector, if there is one. Of an object that breaks the rule already it may have values that no
// label has.
func (j *judgement) selects(v any, rule exception, path *field.Path) {
	s := labelSelector(v)
	errs := selectorErrors(s, false, path)
	if len(errs) > 0 && j.excused(rule) {
		errs = selectorErrors(s, true, path)
	}
	j.errs = append(j.errs, errs...)
}

func selectorErrors(s *metav1.LabelSelector, anyValue bool, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	return unversioned.ValidateLabelSelector(s,
		unversioned.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: anyValue}, path)
}

// labelValues judges the values that a label of a node may have.
func labelValues(j *judgement, p place) {
	for i, v := range texts(p.value) {
		if wrong := validation.IsValidLabelValue(v); len(wrong) > 0 && !j.excused(nodeValues) {
			j.invalids(p.path.Index(i), v, wrong)
		}
	}
}

package crd

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions is a definition's list of conditions being changed.
type conditions struct {
	list *[]apiextensionsv1.CustomResourceDefinitionCondition
	now  time.Time
}

// set adds or replaces a condition. The time of a condition changes with its status only.
func (c conditions) set(to apiextensionsv1.CustomResourceDefinitionCondition) {
	to.LastTransitionTime = metav1.NewTime(c.now.Truncate(time.Second))
	have := findCondition(*c.list, to.Type)
	if have == nil {
		*c.list = append(*c.list, to)
		return
	}
	if have.Status == to.Status && !have.LastTransitionTime.IsZero() {
		to.LastTransitionTime = have.LastTransitionTime
	}
	to.ObservedGeneration = have.ObservedGeneration
	*have = to
}

func (c conditions) remove(kind apiextensionsv1.CustomResourceDefinitionConditionType) {
	*c.list = slices.DeleteFunc(*c.list,
		func(have apiextensionsv1.CustomResourceDefinitionCondition) bool { return have.Type == kind })
}

func findCondition(
	list []apiextensionsv1.CustomResourceDefinitionCondition,
	kind apiextensionsv1.CustomResourceDefinitionConditionType,
) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}

// isTrue reports whether a definition has the condition.
func isTrue(
	def *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType,
) bool {
	c := findCondition(def.Status.Conditions, kind)
	return c != nil && c.Status == apiextensionsv1.ConditionTrue
}

// establish sets Established from NamesAccepted. Once true it stays true: a definition with conflicting new names is
// still served under its old ones.
func (c conditions) establish(def *apiextensionsv1.CustomResourceDefinition) {
	have := findCondition(*c.list, apiextensionsv1.Established)
	if have != nil && have.Status == apiextensionsv1.ConditionTrue {
		return
	}
	to := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
	}
	names := findCondition(*c.list, apiextensionsv1.NamesAccepted)
	switch {
	case names == nil:
		// The names equal the accepted ones, but no condition accepts them; kube-apiserver sets none either.
		return
	case names.Status != apiextensionsv1.ConditionTrue:
		if have != nil {
			return
		}
		to.Reason, to.Message = "NotAccepted", "not all names are accepted"
	case badConversionCA(def):
		to.Reason, to.Message = "InvalidCABundle", "The conversion webhook CABundle is invalid"
	default:
		to.Status, to.Reason, to.Message = apiextensionsv1.ConditionTrue, "InitialNamesAccepted",
			"the initial names have been accepted"
	}
	c.set(to)
}

func badConversionCA(def *apiextensionsv1.CustomResourceDefinition) bool {
	conv := def.Spec.Conversion
	return conv != nil && conv.Webhook != nil && conv.Webhook.ClientConfig != nil &&
		checkCABundle(conv.Webhook.ClientConfig.CABundle) != nil
}

// approval is the state of the annotation required for definitions in Kubernetes' own groups.
type approval int

const (
	approvalInvalid approval = iota
	approved
	approvalBypassed
	approvalMissing
)

// protectedGroup reports whether definitions in the group need an approval.
func protectedGroup(group string) bool {
	return group == "k8s.io" || strings.HasSuffix(group, ".k8s.io") || group == "kubernetes.io" ||
		strings.HasSuffix(group, ".kubernetes.io")
}

// approvalOf parses the approval annotation and describes its state in a sentence.
func approvalOf(annotations map[string]string) (approval, string) {
	const name, see = apiextensionsv1.KubeAPIApprovedAnnotation,
		"see https://github.com/kubernetes/enhancements/pull/1111"
	value := annotations[name]
	if value == "" {
		return approvalMissing, fmt.Sprintf("protected groups must have approval annotation %q, %s", name, see)
	}
	if strings.HasPrefix(value, "unapproved") {
		return approvalBypassed, fmt.Sprintf("not approved: %q", value)
	}
	if u, err := url.ParseRequestURI(value); err == nil && u.Host != "" && u.Scheme != "" {
		return approved, "approved in " + value
	}
	return approvalInvalid,
		fmt.Sprintf(
			"protected groups must have approval annotation %q with either a URL or a reason starting with \"unapproved\", %s", name, see)
}

// approvalCondition returns nil for groups that need no approval.
func approvalCondition(
	def *apiextensionsv1.CustomResourceDefinition,
) *apiextensionsv1.CustomResourceDefinitionCondition {
	if !protectedGroup(def.Spec.Group) {
		return nil
	}
	state, message := approvalOf(def.Annotations)
	c := &apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant, Status: apiextensionsv1.ConditionFalse,
		Message: message,
	}
	switch state {
	case approvalInvalid:
		c.Reason = "InvalidAnnotation"
	case approvalMissing:
		c.Reason = "MissingAnnotation"
	case approved:
		c.Status, c.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case approvalBypassed:
		c.Reason = "UnapprovedAnnotation"
	}
	return c
}

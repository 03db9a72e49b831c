package crd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type names = apiextensionsv1.CustomResourceDefinitionNames

// parseNames reads "plural singular kind listKind shortName...", with "-" for none.
func parseNames(s string) (n names) {
	words := strings.Fields(s)
	for i, at := range []*string{&n.Plural, &n.Singular, &n.Kind, &n.ListKind} {
		if i < len(words) && words[i] != "-" {
			*at = words[i]
		}
	}
	if len(words) > 4 {
		n.ShortNames = words[4:]
	}
	return n
}

// TestStatusNames covers the cases of Kubernetes' naming controller.
func TestStatusNames(t *testing.T) {
	const inUse = ` is already in use`
	tests := []struct {
		name     string
		spec     string
		accepted string
		others   []string
		was      string // conditions before
		want     string // accepted names after
		after    string // conditions after: type=status/reason/message
	}{
		{name: "first", spec: "a b A AList c", want: "a b A AList c",
			after: `NamesAccepted=True/NoConflicts/no conflicts found Established=True/InitialNamesAccepted/the initial names have been accepted`},
		{name: "plural taken by a short name", spec: "a b A AList", others: []string{"x y X XList a"},
			want: "- b A AList",
			after: `NamesAccepted=False/PluralConflict/"a"` + inUse +
				` Established=False/NotAccepted/not all names are accepted`},
		{name: "singular taken", spec: "a b A AList", others: []string{"b x X XList"}, want: "a - A AList",
			after: `NamesAccepted=False/SingularConflict/"b"` + inUse +
				` Established=False/NotAccepted/not all names are accepted`},
		{name: "one short name taken", spec: "a b A AList c d", others: []string{"x d X XList"}, want: "a b A AList",
			after: `NamesAccepted=False/ShortNamesConflict/"d"` + inUse +
				` Established=False/NotAccepted/not all names are accepted`},
		{name: "two short names taken", spec: "a b A AList c d", others: []string{"c d X XList"}, want: "a b A AList",
			after: `NamesAccepted=False/ShortNamesConflict/["c"` + inUse + `, "d"` + inUse +
				`] Established=False/NotAccepted/not all names are accepted`},
		{name: "kind taken by a list kind", spec: "a b A AList", others: []string{"x y X A"}, want: "a b - AList",
			after: `NamesAccepted=False/KindConflict/"A"` + inUse +
				` Established=False/NotAccepted/not all names are accepted`},
		{name: "list kind taken; the last conflict is told", spec: "a b A AList", others: []string{"a y AList X"},
			want: "- b A -",
			after: `NamesAccepted=False/ListKindConflict/"AList"` + inUse +
				` Established=False/NotAccepted/not all names are accepted`},
		{name: "nothing to do", spec: "a b A AList", accepted: "a b A AList", others: []string{"a b A AList"},
			was: `NamesAccepted=True/x/y Established=True/x/y`, want: "a b A AList",
			after: `NamesAccepted=True/x/y Established=True/x/y`},
		{name: "a conflict keeps the old names served", spec: "a b A AList c", accepted: "a b A AList d",
			others: []string{"x y X XList c"},
			was:    `NamesAccepted=True/NoConflicts/no conflicts found Established=True/x/y`, want: "a b A AList d",
			after: `NamesAccepted=False/ShortNamesConflict/"c"` + inUse + ` Established=True/x/y`},
		{name: "own short names stay", spec: "a b A AList c d", accepted: "a b A AList c",
			others: []string{"a b A AList c"},
			was:    `Established=True/x/y`, want: "a b A AList c d",
			after: `Established=True/x/y NamesAccepted=True/NoConflicts/no conflicts found`},
		{name: "a conflict ends", spec: "a b A AList", accepted: "- b A AList",
			was:   `NamesAccepted=False/PluralConflict/z Established=False/NotAccepted/not all names are accepted`,
			want:  "a b A AList",
			after: `NamesAccepted=True/NoConflicts/no conflicts found Established=True/InitialNamesAccepted/the initial names have been accepted`},
		{name: "short names go", spec: "a b A AList", accepted: "a b A AList c", was: `Established=True/x/y`,
			want:  "a b A AList",
			after: `Established=True/x/y NamesAccepted=True/NoConflicts/no conflicts found`},
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			def := &apiextensionsv1.CustomResourceDefinition{}
			def.Spec.Group = "example.com"
			def.Spec.Names, def.Status.AcceptedNames = parseNames(test.spec), parseNames(test.accepted)
			def.Status.Conditions = parseConditions(test.was)
			var others []Claim
			for _, o := range test.others {
				others = append(others, Claim{Names: parseNames(o)})
			}
			got, changed := Status(def, others, now)
			if want := parseNames(test.want); fmt.Sprint(got.AcceptedNames) != fmt.Sprint(want) {
				t.Errorf("accepted %v, want %v", got.AcceptedNames, want)
			}
			if text := formatConditions(got.Conditions); text != test.after {
				t.Errorf("conditions\n got %s\nwant %s", text, test.after)
			}
			if wantChanged := test.name != "nothing to do"; changed != wantChanged {
				t.Errorf("changed %v", changed)
			}
			def.Status = *got
			if again, changed := Status(def, others, now.Add(time.Hour)); changed && test.want == test.spec {
				t.Errorf("changes again: %v", again)
			}
		})
	}
}

func TestStatusApproval(t *testing.T) {
	const must = `protected groups must have approval annotation "api-approved.kubernetes.io"`
	const see = `, see https://github.com/kubernetes/enhancements/pull/1111`
	for _, test := range []struct{ group, annotation, want string }{
		{"example.com", "", ""},
		{"sigs.k8s.io", "", "False/MissingAnnotation/" + must + see},
		{"k8s.io", "https://github.com/a/b", "True/ApprovedAnnotation/approved in https://github.com/a/b"},
		{"x.kubernetes.io", "unapproved, yet", `False/UnapprovedAnnotation/not approved: "unapproved, yet"`},
		{"kubernetes.io", "yes", "False/InvalidAnnotation/" + must +
			` with either a URL or a reason starting with "unapproved"` + see},
	} {
		def := &apiextensionsv1.CustomResourceDefinition{}
		def.Spec.Group = test.group
		def.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: test.annotation}
		got, _ := Status(def, nil, time.Time{})
		text := ""
		if c := findCondition(got.Conditions, apiextensionsv1.KubernetesAPIApprovalPolicyConformant); c != nil {
			text = fmt.Sprintf("%s/%s/%s", c.Status, c.Reason, c.Message)
		}
		if text != test.want {
			t.Errorf("%s %q: %s, want %s", test.group, test.annotation, text, test.want)
		}
	}
}

// TestConditionOrder checks that a new definition has its conditions in the order of a running kube-apiserver.
func TestConditionOrder(t *testing.T) {
	def := &apiextensionsv1.CustomResourceDefinition{}
	def.Spec.Group, def.Spec.Names.Plural, def.Spec.Names.Kind = "x.k8s.io", "as", "A"
	def.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, yet"}
	status, _ := Status(def, nil, time.Time{})
	var got []string
	for _, c := range status.Conditions {
		got = append(got, string(c.Type))
	}
	if want := []string{"NamesAccepted", "Established", "KubernetesAPIApprovalPolicyConformant"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestConditionTime: a condition's time is that of its status, not of its message.
func TestConditionTime(t *testing.T) {
	first, second := time.Unix(100, 0), time.Unix(200, 5)
	var list []apiextensionsv1.CustomResourceDefinitionCondition
	set := func(now time.Time, status apiextensionsv1.ConditionStatus, reason string) int64 {
		conditions{
			list: &list, now: now,
		}.set(apiextensionsv1.CustomResourceDefinitionCondition{Type: "X", Status: status, Reason: reason})
		return list[0].LastTransitionTime.Unix()
	}
	if at := set(first, "True", "a"); at != 100 {
		t.Error(at)
	}
	if at := set(second, "True", "b"); at != 100 || list[0].Reason != "b" {
		t.Error(at, list)
	}
	if at := set(second, "False", "b"); at != 200 || len(list) != 1 {
		t.Error(at, list)
	}
}

func parseConditions(s string) (list []apiextensionsv1.CustomResourceDefinitionCondition) {
	for _, word := range strings.Fields(s) {
		kind, rest, found := strings.Cut(word, "=")
		if !found {
			list[len(list)-1].Message += " " + word
			continue
		}
		parts := strings.SplitN(rest, "/", 3)
		list = append(list, apiextensionsv1.CustomResourceDefinitionCondition{
			Type:   apiextensionsv1.CustomResourceDefinitionConditionType(kind),
			Status: apiextensionsv1.ConditionStatus(parts[0]), Reason: parts[1], Message: parts[2],
		})
	}
	return list
}

func formatConditions(list []apiextensionsv1.CustomResourceDefinitionCondition) string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s=%s/%s/%s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, " ")
}

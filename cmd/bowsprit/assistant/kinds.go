package assistant

import (
	"context"
	"fmt"
	"strings"

	explainv2 "k8s.io/kubectl/pkg/explain/v2"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/answer"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// kindsInput are the parameters of list_kinds.
type kindsInput struct {
	Group string `json:"group,omitempty" jsonschema:"only kinds of groups that contain this text"`
	Size
}

func (t *Tools) listKinds(_ context.Context, in *kindsInput) (*answer.Answer, error) {
	all, err := connect.Resources(t.discovery)
	if err != nil && len(all) == 0 {
		return nil, err
	}
	ans := &answer.Answer{Head: answer.Row("NAME", "VERSION", "KIND", "NAMESPACED")}
	for i := range all {
		r := &all[i]
		if strings.Contains(r.Group, in.Group) {
			ans.Lines = append(ans.Lines, answer.Row(title(r), r.Version, r.Kind, fmt.Sprint(r.Namespaced)))
		}
	}
	ans.Field("kinds", "%d", len(ans.Lines))
	if err != nil { // groups of extension servers that do not respond
		ans.Field("incomplete", "the last lines name the groups that do not respond")
		ans.Text(err.Error())
	}
	return ans, nil
}

// explainInput are the parameters of explain_kind.
type explainInput struct {
	Kind      string `json:"kind" jsonschema:"the kind, such as pods, deploy or databases.example.com"`
	Field     string `json:"field,omitempty" jsonschema:"the path of a field, such as spec.template"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"only the names and types of all fields below"`
	Size
}

func (t *Tools) explainKind(_ context.Context, in *explainInput) (*answer.Answer, error) {
	r, err := connect.Named(t.discovery, in.Kind)
	if err != nil {
		return nil, err
	}
	var path []string
	if in.Field != "" {
		path = strings.Split(strings.Trim(in.Field, "."), ".")
	}
	var text strings.Builder
	err = explainv2.PrintModelDescription(path, &text, t.discovery.OpenAPIV3(), r.GroupVersionResource, in.Recursive, 0,
		"plaintext")
	if err != nil {
		return nil, err
	}
	ans := &answer.Answer{}
	ans.Text(text.String())
	return ans, nil
}

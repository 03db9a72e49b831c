package assistant

import (
	"context"
	"strings"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/answer"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/explain"
)

// deniedInput are the parameters of why_denied.
type deniedInput struct {
	Verb      string   `json:"verb,omitempty" jsonschema:"the verb of the request, such as get or create"`
	Resource  string   `json:"resource,omitempty" jsonschema:"the resource, such as pods, pods/log or deployments.apps"`
	Name      string   `json:"name,omitempty" jsonschema:"the name of the object"`
	Path      string   `json:"path,omitempty" jsonschema:"instead of a resource: a path such as /metrics"`
	Text      string   `json:"text,omitempty" jsonschema:"instead of verb and resource: the text of the refusal"`
	Namespace string   `json:"namespace,omitempty" jsonschema:"the namespace (default: that of the context)"`
	All       bool     `json:"allNamespaces,omitempty" jsonschema:"the request covers all namespaces"`
	User      string   `json:"user,omitempty" jsonschema:"the user of the request (default: you)"`
	Groups    []string `json:"groups,omitempty" jsonschema:"the groups of that user"`
	Size
}

func (t *Tools) whyDenied(ctx context.Context, in *deniedInput) (*answer.Answer, error) {
	namespace, err := t.namespace(in.Namespace)
	if err != nil {
		return nil, err
	}
	q := explain.Request{User: in.User, Groups: in.Groups, Namespace: namespace, AllNamespaces: in.All}
	switch {
	case in.Text != "":
		q.Words = []string{in.Text}
	case in.Path != "":
		q.Words = []string{in.Verb, "/" + strings.TrimPrefix(in.Path, "/")}
	case in.Resource != "":
		q.Words = []string{in.Verb, in.Resource}
		if in.Name != "" {
			q.Words = append(q.Words, in.Name)
		}
	}
	text, err := explain.Denied(ctx, t.server.Config, q)
	if err != nil {
		return nil, err
	}
	ans := &answer.Answer{}
	ans.Text(text)
	return ans, nil
}

// stuckInput are the parameters of why_stuck.
type stuckInput struct {
	objectInput
	Size
}

func (t *Tools) whyStuck(ctx context.Context, in *stuckInput) (*answer.Answer, error) {
	server := t.server
	var err error
	if server.Namespace, err = t.namespace(in.Namespace); err != nil {
		return nil, err
	}
	text, err := explain.Stuck(ctx, &server, in.Kind, in.Name)
	if err != nil {
		return nil, err
	}
	ans := &answer.Answer{}
	ans.Text(text)
	return ans, nil
}

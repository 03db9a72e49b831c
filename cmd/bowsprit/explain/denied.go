package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/feature/review/why"
)

// deniedFlags are the flags of "bowsprit why-denied".
type deniedFlags struct {
	server       connect.Flags
	namespace    string
	wholeCluster bool
	user         string
	groups       []string
	file         string
	form         output.Form
}

// DeniedCommand returns "bowsprit why-denied".
func DeniedCommand() *cobra.Command {
	var flags deniedFlags
	cmd := &cobra.Command{
		Use:   "why-denied (VERB RESOURCE [NAME] | VERB /PATH | 'TEXT OF A 403' | -f FILE)",
		Short: "Explain why a request is refused, and how to allow it",
		Long: `Explain why a request is refused: the closest rules and the parts they lack, the roles that would grant the request,
starting with the least powerful, and the missing binding. The explanation includes only roles and bindings that you may
list.

Describe the request in words (get pods/log web), or pass the text of the refusal in quotes or on stdin (-). With -f, the
command sends an object as a dry run and names the admission plugin, policy or webhook that refuses it.

--as and --as-group name the user of the request, by default you. The text of a refusal does not contain the user's
groups, and the server cannot look them up: give them with --as-group.`,
		Example: `  bowsprit why-denied get pods/log -n dev --as alice --as-group dev
  bowsprit why-denied 'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "dev"'
  kubectl get pods --as alice 2>&1 | bowsprit why-denied -
  bowsprit why-denied -f deployment.yaml --as alice`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return whyDenied(cmd, &flags, args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.namespace, "namespace", "n", "", "the namespace (default: that of the context)")
	f.BoolVarP(&flags.wholeCluster, "all-namespaces", "A", false, "the request covers all namespaces")
	f.StringVar(&flags.user, "as", "", "the user of the request, such as alice or system:serviceaccount:NAMESPACE:NAME")
	f.StringSliceVar(&flags.groups, "as-group", nil, "with --as: a group of the user; may be repeated")
	f.StringVarP(&flags.file, "filename", "f", "", "send the objects of this file as a dry run; - is stdin")
	flags.form.Bind(f)
	flags.server.Bind(f)
	return cmd
}

var errWithoutUser = exit.Usage(errors.New("--as-group needs --as: give both"))

// deniedRequest is the request to explain.
type deniedRequest struct {
	user     string // "" for the caller
	groups   []string
	resource *authorizationv1.ResourceAttributes
	other    *authorizationv1.NonResourceAttributes
	unknown  string // the name of a resource that the server does not have, or ""
}

func whyDenied(cmd *cobra.Command, flags *deniedFlags, args []string) error {
	ctx, in, out := cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()
	if flags.file != "" && len(args) > 0 {
		return exit.Usage(errors.New("-f and words both describe the request: give one of them"))
	}
	server, err := flags.server.Read(cmd)
	if err != nil {
		return err
	}
	config, namespace := server.Config, server.Namespace
	if flags.namespace != "" {
		namespace = flags.namespace
	}
	if flags.file != "" {
		return whyRefused(ctx, flags, config, namespace, streams{in, out})
	}
	w, err := flags.parse(config, namespace, args, in)
	if err != nil {
		return err
	}
	answer, err := explained(ctx, config, w)
	if err != nil {
		return err
	}
	if err := answer.show(out, flags.form, w); err != nil {
		return err
	}
	if !answer.Allowed {
		return exit.Answered()
	}
	return nil
}

// show prints an answer.
func (a *answer) show(out io.Writer, form output.Form, w *deniedRequest) error {
	return form.Print(out, a, func(out io.Writer) error {
		_, err := io.WriteString(out, a.text(w))
		return err
	})
}

// deniedRequest returns the request that the arguments describe.
func (f *deniedFlags) parse(
	config *rest.Config, namespace string, args []string, in io.Reader,
) (*deniedRequest, error) {
	text := strings.Join(args, " ")
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(in, 1<<20))
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	if refusal := parseRefusal(text); refusal != nil {
		if f.user != "" {
			refusal.user = f.user
		}
		refusal.groups = f.groups
		return refusal, nil
	}
	w := &deniedRequest{user: f.user, groups: f.groups}
	switch {
	case f.user == "" && len(f.groups) > 0:
		return nil, errWithoutUser
	case len(args) < 2 || len(args) > 3:
		return nil, exit.Usage(errors.New("no request given: name a verb and a resource, such as: get pods/log web, or pass " +
			"the text of the refusal, or an object with -f"))
	case strings.HasPrefix(args[1], "/"):
		w.other = &authorizationv1.NonResourceAttributes{Verb: args[0], Path: args[1]}
		return w, nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	resource, namespaced, known, err := connect.FindResource(client, args[1])
	if err != nil {
		return nil, err
	}
	if !known {
		w.unknown = args[1]
	}
	resource.Verb = args[0]
	if namespaced && !f.wholeCluster {
		resource.Namespace = namespace
	}
	if len(args) == 3 {
		resource.Name = args[2]
	}
	w.resource = resource
	return w, nil
}

// answer is the server's explanation of a request.
type answer struct {
	// Unknown is the name of the resource if the server does not have it.
	Unknown     string           `json:"unknownResource,omitempty"`
	Allowed     bool             `json:"allowed"`
	Denied      bool             `json:"denied,omitempty"`
	Reason      string           `json:"reason,omitempty"`
	Error       string           `json:"evaluationError,omitempty"`
	Explanation *why.Explanation `json:"explanation,omitempty"`
}

// explained sends the server a review that requests an explanation.
func explained(ctx context.Context, config *rest.Config, w *deniedRequest) (*answer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var body any = &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: w.resource, NonResourceAttributes: w.other,
	}}
	path, kind := "selfsubjectaccessreviews", "SelfSubjectAccessReview"
	if w.user != "" {
		path, kind = "subjectaccessreviews", "SubjectAccessReview"
		body = &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: w.user, Groups: w.allGroups(), ResourceAttributes: w.resource, NonResourceAttributes: w.other,
		}}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var typed map[string]any
	if err := json.Unmarshal(data, &typed); err != nil {
		return nil, err
	}
	typed["apiVersion"], typed["kind"] = "authorization.k8s.io/v1", kind
	if data, err = json.Marshal(typed); err != nil {
		return nil, err
	}
	result := client.AuthorizationV1().RESTClient().Post().Resource(path).Param("explain", "true").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(data).Do(ctx)
	if err := result.Error(); err != nil { // with the server's message, which Raw omits
		return nil, fmt.Errorf("request the explanation: %w", err)
	}
	if data, err = result.Raw(); err != nil {
		return nil, err
	}
	var review struct{ Status answer }
	if err := json.Unmarshal(data, &review); err != nil {
		return nil, err
	}
	review.Status.Unknown = w.unknown
	return &review.Status, nil
}

// allGroups returns the groups of the user: the given groups, the groups of every service account, and the group of all
// authenticated users.
func (w *deniedRequest) allGroups() []string {
	groups := slices.Clone(w.groups)
	if rest, ok := strings.CutPrefix(w.user, "system:serviceaccount:"); ok {
		if namespace, _, ok := strings.Cut(rest, ":"); ok {
			groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
		}
	}
	if w.user == "system:anonymous" {
		return append(groups, "system:unauthenticated")
	}
	if slices.Contains(groups, "system:authenticated") {
		return groups
	}
	return append(groups, "system:authenticated")
}

package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manifest"
	"github.com/bowsprit/bowsprit/internal/admit"
)

// streams are where a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer
}

// whyRefused sends the objects of a file as dry runs, and reports the reasons for refusals.
func whyRefused(
	ctx context.Context, flags *deniedFlags, config *rest.Config, namespace string, s streams,
) error {
	in := s.in
	if flags.user == "" && len(flags.groups) > 0 {
		return errWithoutUser
	}
	if flags.file != "-" {
		f, err := os.Open(flags.file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	objects, err := readObjects(flags.file, in)
	if err != nil {
		return err
	}
	t, err := newTrial(config, flags)
	if err != nil {
		return err
	}
	verdicts, refused := []verdict{}, false
	for _, obj := range objects {
		if obj.GetNamespace() == "" || flags.namespace != "" {
			obj.SetNamespace(namespace)
		}
		v, err := t.run(ctx, obj)
		if err != nil {
			return err
		}
		refused = refused || v.Refused
		verdicts = append(verdicts, *v)
	}
	err = flags.form.Print(s.out, verdicts, func(out io.Writer) error {
		for i := range verdicts {
			if _, err := io.WriteString(out, verdicts[i].Text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if refused {
		return exit.Answered()
	}
	return nil
}

// verdict is the outcome of one dry run.
type verdict struct {
	Object  string `json:"object"` // its kind, name and namespace
	Refused bool   `json:"refused"`
	// Plugin is the admission plugin that refuses the object, or "".
	Plugin string `json:"plugin,omitempty"`
	Text   string `json:"text"`
}

// readObjects returns the objects of a file, or all problems of the file.
func readObjects(file string, in io.Reader) (all []*unstructured.Unstructured, err error) {
	var set manifest.Set
	set.Read(file, in)
	for i := range set.Documents {
		if err := set.Documents[i].CheckKind(); err != nil {
			set.Problems = append(set.Problems, err)
		}
		all = append(all, &unstructured.Unstructured{Object: set.Documents[i].Object})
	}
	if len(all) == 0 && len(set.Problems) == 0 {
		return nil, fmt.Errorf("%s: it contains no object", file)
	}
	return all, set.Err()
}

// trial sends dry runs and finds the reasons for refusals.
type trial struct {
	flags    *deniedFlags
	config   *rest.Config // the caller's
	as       dynamic.Interface
	client   kubernetes.Interface
	warnings refusals
}

// refusals records the plugin that has refused a request.
type refusals struct {
	mu sync.Mutex
	by string
}

// HandleWarningHeader takes the warnings of answers.
func (r *refusals) HandleWarningHeader(_ int, _, text string) {
	if plugin, ok := strings.CutPrefix(text, admit.RefusedBy); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.by = plugin
	}
}

func (r *refusals) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := r.by
	r.by = ""
	return by
}

// explaining is a transport that requests explanations of refused writes.
type explaining struct{ http.RoundTripper }

// RoundTrip adds the question.
func (a explaining) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		r = r.Clone(r.Context())
		query := r.URL.Query()
		query.Set("explain", "true")
		r.URL.RawQuery = query.Encode()
	}
	return a.RoundTripper.RoundTrip(r)
}

func newTrial(config *rest.Config, flags *deniedFlags) (*trial, error) {
	t := &trial{flags: flags, config: config}
	as := rest.CopyConfig(config)
	as.WarningHandler = &t.warnings
	as.Wrap(func(rt http.RoundTripper) http.RoundTripper { return explaining{rt} })
	if flags.user != "" {
		as.Impersonate = rest.ImpersonationConfig{UserName: flags.user, Groups: flags.groups}
	}
	var err error
	if t.as, err = dynamic.NewForConfig(as); err != nil {
		return nil, err
	}
	t.client, err = kubernetes.NewForConfig(config)
	return t, err
}

// run sends one object and returns the outcome. It returns an error if it could not send the object.
func (t *trial) run(ctx context.Context, obj *unstructured.Unstructured) (*verdict, error) {
	discovery, err := discovery.NewDiscoveryClientForConfig(t.config)
	if err != nil {
		return nil, err
	}
	resource, err := connect.ResourceOf(discovery, obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	var client dynamic.ResourceInterface = t.as.Resource(resource.GroupVersionResource)
	name := fmt.Sprintf("%s %s", obj.GetKind(), obj.GetName())
	if resource.Namespaced {
		client = t.as.Resource(resource.GroupVersionResource).Namespace(obj.GetNamespace())
		name += " in the namespace " + obj.GetNamespace()
	} else {
		obj.SetNamespace("")
	}
	_, err = client.Create(ctx, obj, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.Apply(ctx, obj.GetName(), obj,
			metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}, Force: true, FieldManager: "bowsprit-why"})
	}
	plugin := t.warnings.take()
	if err == nil {
		return &verdict{Object: name, Text: name + " is not refused.\n"}, nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, err
	}
	if w := parseRefusal(err.Error()); w != nil && plugin == "" {
		w.groups = t.flags.groups
		answer, err := explained(ctx, t.config, w)
		if err != nil {
			return nil, err
		}
		return &verdict{Object: name, Refused: true, Text: answer.text(w)}, nil
	}
	return &verdict{
		Object: name, Refused: true, Plugin: plugin, Text: name + t.found(ctx, plugin, err, obj.GetNamespace()),
	}, nil
}

// found describes the reason for a refusal.
func (t *trial) found(ctx context.Context, plugin string, err error, namespace string) string {
	var b strings.Builder
	switch {
	case plugin != "":
		fmt.Fprintf(&b, " is refused by the admission plugin %s:\n", plugin)
	case apierrors.IsInvalid(err):
		b.WriteString(" is not valid; admission did not refuse it:\n")
	default:
		b.WriteString(" is refused:\n")
	}
	fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	for _, line := range t.details(ctx, plugin, err.Error(), namespace) {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	return b.String()
}

var (
	policyNamed = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request: (.*)`)
	hookNamed   = regexp.MustCompile(`(?:admission webhook|failed calling webhook|calling webhook) "([^"]+)"`)
)

// details returns details of the object or policy behind a refusal, as far as the caller may read them.
func (t *trial) details(ctx context.Context, plugin, text, namespace string) []string {
	if m := policyNamed.FindStringSubmatch(text); m != nil {
		return t.policy(ctx, m[1], m[2], m[3])
	}
	if m := hookNamed.FindStringSubmatch(text); m != nil {
		return t.hook(ctx, m[1])
	}
	switch plugin {
	case "PodSecurity":
		return t.labels(ctx, namespace, "pod-security.kubernetes.io/")
	case "ResourceQuota":
		return []string{"see: kubectl describe resourcequotas --namespace=" + shell(namespace)}
	case "LimitRanger":
		return []string{"see: kubectl describe limitranges --namespace=" + shell(namespace)}
	case "NamespaceLifecycle":
		return []string{"see: bowsprit why-stuck namespace " + shell(namespace)}
	}
	return nil
}

func (t *trial) policy(ctx context.Context, name, binding, message string) (lines []string) {
	admission := t.client.AdmissionregistrationV1()
	policy, err := admission.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	for i, v := range policy.Spec.Validations {
		if len(policy.Spec.Validations) == 1 || v.Message == message || "failed expression: "+v.Expression == message {
			lines = append(lines, fmt.Sprintf("spec.validations[%d] of the policy requires: %s", i, v.Expression))
		}
	}
	b, err := admission.ValidatingAdmissionPolicyBindings().Get(ctx, binding, metav1.GetOptions{})
	if err != nil {
		return lines
	}
	if p := b.Spec.ParamRef; p != nil {
		lines = append(lines, fmt.Sprintf("the binding %s has the parameters %s", binding,
			strings.Trim(p.Namespace+"/"+p.Name, "/")))
	}
	return append(lines, fmt.Sprintf("to change it: kubectl edit validatingadmissionpolicy %s, or its binding %s",
		shell(name), shell(binding)))
}

func (t *trial) hook(ctx context.Context, name string) (lines []string) {
	add := func(kind, configuration string, c *admissionregistrationv1.WebhookClientConfig,
		failure *admissionregistrationv1.FailurePolicyType,
	) {
		where := "a URL"
		if s := c.Service; s != nil {
			where = fmt.Sprintf("the service %s/%s", s.Namespace, s.Name)
		} else if c.URL != nil {
			where = *c.URL
		}
		lines = append(lines, fmt.Sprintf("it belongs to the %s %s and calls %s", kind, configuration, where))
		if failure != nil {
			lines = append(lines, fmt.Sprintf("if it does not respond, requests %s",
				map[admissionregistrationv1.FailurePolicyType]string{
					admissionregistrationv1.Fail: "are refused", admissionregistrationv1.Ignore: "proceed",
				}[*failure]))
		}
	}
	admission := t.client.AdmissionregistrationV1()
	if list, err := admission.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, c := range list.Items {
			for _, w := range c.Webhooks {
				if w.Name == name {
					add("ValidatingWebhookConfiguration", c.Name, &w.ClientConfig, w.FailurePolicy)
				}
			}
		}
	}
	if list, err := admission.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, c := range list.Items {
			for _, w := range c.Webhooks {
				if w.Name == name {
					add("MutatingWebhookConfiguration", c.Name, &w.ClientConfig, w.FailurePolicy)
				}
			}
		}
	}
	return lines
}

// labels returns the labels of a namespace that begin with a prefix.
func (t *trial) labels(ctx context.Context, namespace, prefix string) (lines []string) {
	ns, err := t.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	for key, value := range ns.Labels {
		if strings.HasPrefix(key, prefix) {
			lines = append(lines, fmt.Sprintf("the namespace %s has the label %s=%s", namespace, key, value))
		}
	}
	return sortedLines(lines)
}

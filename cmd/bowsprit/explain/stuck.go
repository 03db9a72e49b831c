package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// StuckCommand returns "bowsprit why-stuck".
func StuckCommand() *cobra.Command {
	var server connect.Flags
	var namespace string
	var form output.Form
	cmd := &cobra.Command{
		Use:   "why-stuck RESOURCE NAME",
		Short: "Explain why an object that is being deleted does not go away",
		Long: `Explain why an object that is being deleted does not go away: its finalizers with their owners and the clients that set
them, the remaining content of a namespace or definition, the object's dependents, and the containers of a pod.`,
		Example: `  bowsprit why-stuck namespace shop
  bowsprit why-stuck pvc data -n shop`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && strings.Count(args[0], "/") == 1 || len(args) == 2 {
				return nil
			}
			return fmt.Errorf("%q takes a resource and a name, such as: namespace shop", cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				args = strings.Split(args[0], "/")
			}
			from, err := server.Read(cmd)
			if err != nil {
				return err
			}
			s, err := newSearch(from, namespace)
			if err != nil {
				return err
			}
			found, err := s.run(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if err := form.Print(cmd.OutOrStdout(), found, found.text); err != nil {
				return err
			}
			if !found.Exists {
				return exit.Answered()
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "the namespace (default: that of the context)")
	form.Bind(cmd.Flags())
	server.Bind(cmd.Flags())
	return cmd
}

// search finds the reasons why an object remains.
type search struct {
	discovery discovery.DiscoveryInterface
	objects   dynamic.Interface
	namespace string
	now       time.Time
}

func newSearch(from *connect.Server, namespace string) (*search, error) {
	config := from.Config
	config.QPS, config.Burst, config.WarningHandler = 100, 200, rest.NoWarnings{} // it lists every kind
	s := &search{namespace: cmp.Or(namespace, from.Namespace), now: time.Now()}
	var err error
	if s.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return nil, err
	}
	s.objects, err = dynamic.NewForConfig(config)
	return s, err
}

func (s *search) run(ctx context.Context, word, name string) (*stuck, error) {
	named, err := connect.Named(s.discovery, word)
	if err != nil {
		return nil, err
	}
	resource, namespaced := named.GroupVersionResource, named.Namespaced
	found := &stuck{Resource: resource.GroupResource().String(), Name: name, Reasons: []reason{},
		title: resource.Resource + " " + name}
	var client dynamic.ResourceInterface = s.objects.Resource(resource)
	if namespaced {
		client = s.objects.Resource(resource).Namespace(s.namespace)
		found.Namespace = s.namespace
	}
	obj, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	found.Exists, found.title = true, obj.GetKind()+" "+obj.GetName()
	s.explain(ctx, found, resource, obj)
	return found, nil
}

// all returns the resources of the server. It omits the groups that do not respond.
func (s *search) all() []connect.Resource {
	all, _ := connect.Resources(s.discovery)
	return all
}

// explain adds all that keeps obj.
func (s *search) explain(
	ctx context.Context, found *stuck, resource schema.GroupVersionResource, obj *unstructured.Unstructured,
) {
	since := obj.GetDeletionTimestamp()
	if since == nil {
		s.owners(ctx, found, obj)
		return
	}
	finalizers := obj.GetFinalizers()
	found.Terminating, found.Finalizers = &since.Time, finalizers
	for _, f := range finalizers {
		kept := found.add("The finalizer %s keeps it%s.", f, setBy(obj, f))
		if condition := knownFinalizers[f]; condition != "" {
			kept.detail("%s", condition)
		} else {
			kept.detail("It is not a Kubernetes finalizer: the controller that set it removes it after cleaning up. Is " +
				"that controller running?")
		}
	}
	switch {
	case resource.Resource == "namespaces" && resource.Group == "":
		s.namespaceContent(ctx, found, obj)
	case resource.Resource == "customresourcedefinitions":
		s.instances(ctx, found, obj)
	case resource.Resource == "pods" && resource.Group == "":
		s.pod(found, obj)
	}
	if slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
		s.dependents(ctx, found, obj)
	}
	s.owners(ctx, found, obj)
	if len(finalizers) > 0 {
		found.add("Removing a finalizer by hand skips its cleanup; nothing does that cleanup later.")
	}
}

// knownFinalizers maps the finalizers of Kubernetes to the conditions for their removal.
var knownFinalizers = map[string]string{
	metav1.FinalizerDeleteDependents: "The garbage collector (garbage-collector-controller) removes it when all " +
		"dependents that block the deletion are gone.",
	metav1.FinalizerOrphanDependents: "The garbage collector (garbage-collector-controller) removes it when no " +
		"dependent refers to this owner any more.",
	"kubernetes.io/pvc-protection": "The persistentvolumeclaim-protection-controller removes it when no " +
		"pod uses the claim.",
	"kubernetes.io/pv-protection": "The persistentvolume-protection-controller removes it when no claim " +
		"is bound to the volume.",
	"customresourcecleanup.apiextensions.k8s.io": "The API server removes it when all objects of the kind are gone.",
	"networking.k8s.io/service-cidr-finalizer":   "The server removes it when no IPAddress of the range is in use.",
	"service.kubernetes.io/load-balancer-cleanup": "The cloud's service controller removes it when the load " +
		"balancer is gone.",
	"batch.kubernetes.io/job-tracking": "The Job controller (job-controller) removes it when it has counted the pod.",
	"resource.kubernetes.io/delete-protection": "The resource claim controller removes it when no pod uses the " +
		"claim.",
}

// setBy returns the client that has set a finalizer, according to the object's field managers.
func setBy(obj *unstructured.Unstructured, finalizer string) string {
	for _, m := range obj.GetManagedFields() {
		var fields struct {
			Metadata struct {
				Finalizers map[string]any `json:"f:finalizers"`
			} `json:"f:metadata"`
		}
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Metadata.Finalizers[fmt.Sprintf("v:%q", finalizer)]; ok {
			text := fmt.Sprintf("; %s set it", m.Manager)
			if m.Time != nil {
				text += " (its last write was at " + m.Time.UTC().Format(time.RFC3339) + ")"
			}
			return text
		}
	}
	return ""
}

// owners lists the existing and the missing owners.
func (s *search) owners(ctx context.Context, found *stuck, obj *unstructured.Unstructured) {
	for _, o := range obj.GetOwnerReferences() {
		state := "exists"
		switch alive, err := s.owner(ctx, o, obj.GetNamespace()); {
		case err != nil:
			state = "cannot be read: " + err.Error()
		case !alive:
			state = "is gone"
		}
		found.add("Its owner %s %s %s.", o.Kind, o.Name, state)
	}
}

func (s *search) owner(ctx context.Context, o metav1.OwnerReference, namespace string) (alive bool, err error) {
	list, err := s.discovery.ServerResourcesForGroupVersion(o.APIVersion)
	if err != nil {
		return false, err
	}
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return false, err
	}
	for _, r := range list.APIResources {
		if r.Kind != o.Kind || strings.Contains(r.Name, "/") {
			continue
		}
		var client dynamic.ResourceInterface = s.objects.Resource(gv.WithResource(r.Name))
		if r.Namespaced {
			client = s.objects.Resource(gv.WithResource(r.Name)).Namespace(namespace)
		}
		owner, err := client.Get(ctx, o.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && owner.GetUID() == o.UID, err
	}
	return false, errors.New("the server has no such kind")
}

// Package content has the commands that store the objects of a server in files and apply them: "bowsprit export" and
// "bowsprit import". Each object has a file without the fields that the server has added, so a directory of objects can
// be kept in git and compared.
package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// exportFlags are the flags of "bowsprit export".
type exportFlags struct {
	server     connect.Flags
	directory  string
	namespaces []string
	kinds      []string
	selector   string
	secrets    bool
	all        bool
	form       output.Form
}

// exportResult is the result of an export.
type exportResult struct {
	Directory string `json:"directory"`
	Objects   int    `json:"objects"`
	// Changed and Removed count files.
	Changed int `json:"changed"`
	Removed int `json:"removed"`
	// Failures are the resources and namespaces that were not exported.
	Failures []string `json:"failures,omitempty"`
}

// ExportCommand returns "bowsprit export".
func ExportCommand() *cobra.Command {
	var flags exportFlags
	cmd := &cobra.Command{
		Use:   "export DIRECTORY",
		Short: "Write the objects of a server to files, one each, ready for git",
		Long: `Write the objects of a server to a directory, a YAML file for each:

  cluster/customresourcedefinitions.apiextensions.k8s.io/crontabs.stable.example.com.yaml
  namespaces/shop/crontabs.stable.example.com/nightly.yaml

Fields that the server sets are left out: managed fields, uid, resourceVersion, times, and status. So are objects that
the server or a controller creates again by itself, events, leases, tokens, and, without --secrets, Secrets. An existing
directory of an earlier export is updated: files of deleted objects are removed.

"bowsprit import" applies such a directory to a server.`,
		Example: `  bowsprit export ./state
  bowsprit export ./state --namespace shop --kind crontabs.stable.example.com`,
		Args: arguments.One("directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := flags.server.Read(cmd)
			if err != nil {
				return err
			}
			flags.directory = args[0]
			return export(cmd.Context(), server.Config, &flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&flags.namespaces, "namespace", "n", nil, "only these namespaces, and nothing outside of them")
	f.StringSliceVar(&flags.kinds, "kind", nil, "only these resources, such as configmaps or crontabs.stable.example.com")
	f.StringVarP(&flags.selector, "selector", "l", "", "only objects with matching labels")
	f.BoolVar(&flags.secrets, "secrets", false, "also Secrets, in clear")
	f.BoolVar(&flags.all, "all", false, "also objects that the server and its controllers created")
	flags.form.Bind(f)
	flags.server.Bind(f)
	return cmd
}

// export writes files, then removes the files of deleted objects. It keeps the files of resources that it could not
// list.
func export(ctx context.Context, config *rest.Config, flags *exportFlags, out, notes io.Writer) error {
	config.QPS, config.Burst, config.WarningHandler = 200, 400, rest.NoWarnings{} // it lists every kind
	resources, clients, err := flags.resources(config, notes)
	if err != nil {
		return err
	}
	failures, err := flags.missing(ctx, clients)
	if err != nil {
		return err
	}
	tree, err := openTree(flags.directory)
	if err != nil {
		return err
	}
	defer tree.dir.Close()
	for _, r := range resources {
		if err := flags.write(ctx, clients, r, tree); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", r.GroupResource(), err))
		}
	}
	removed := 0
	if len(failures) == 0 && flags.whole() {
		if removed, err = tree.prune(); err != nil {
			return err
		}
	}
	result := exportResult{Directory: flags.directory, Objects: tree.objects, Changed: tree.changed, Removed: removed}
	for _, failure := range failures {
		result.Failures = append(result.Failures, failure.Error())
	}
	err = flags.form.Print(out, result, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "%s: %d objects, %d files changed, %d removed.\n", result.Directory, result.Objects,
			result.Changed, result.Removed)
		return err
	})
	if err != nil {
		return err
	}
	return exit.List(errors.Join(failures...))
}

// missing returns an error for each namespace that the server does not have. If it has none of them, there is nothing
// to export, and the second error is not nil. A caller who may not read namespaces gets no errors.
func (f *exportFlags) missing(ctx context.Context, clients dynamic.Interface) (some []error, err error) {
	namespaces := clients.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, name := range f.namespaces {
		if _, err := namespaces.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			some = append(some, fmt.Errorf("the namespace %q does not exist", name))
		}
	}
	if len(some) > 0 && len(some) == len(f.namespaces) {
		return nil, fmt.Errorf("%w: nothing was written", errors.Join(some...))
	}
	return some, nil
}

// whole reports whether the export covers all objects, so that other files belong to deleted objects.
func (f *exportFlags) whole() bool {
	return len(f.namespaces) == 0 && len(f.kinds) == 0 && f.selector == ""
}

// resources returns the resources to export.
func (f *exportFlags) resources(config *rest.Config, notes io.Writer) ([]connect.Resource, dynamic.Interface, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	all, err := connect.Resources(d)
	if err != nil && len(all) == 0 {
		return nil, nil, err
	}
	if err != nil {
		fmt.Fprintf(notes, "Warning: some groups do not respond and are left out: %v\n", err)
	}
	for _, kind := range f.kinds {
		if !slices.ContainsFunc(all, func(r connect.Resource) bool { return names(r, kind) }) {
			return nil, nil, fmt.Errorf("the server has no resource %q: use its plural, with its group if it has one", kind)
		}
	}
	all = slices.DeleteFunc(all, func(r connect.Resource) bool {
		if len(f.kinds) > 0 {
			return !slices.ContainsFunc(f.kinds, func(kind string) bool { return names(r, kind) })
		}
		return !f.all && passing(r) || !f.secrets && r.Group == "" && r.Resource == "secrets"
	})
	clients, err := dynamic.NewForConfig(config)
	return all, clients, err
}

// names reports whether a word is the name of a resource, with or without its group.
func names(r connect.Resource, word string) bool {
	return word == r.GroupResource().String() || word == r.Resource || strings.EqualFold(word, r.Kind)
}

// write writes the objects of a resource.
func (f *exportFlags) write(ctx context.Context, clients dynamic.Interface, r connect.Resource, t *tree) error {
	in := []string{metav1.NamespaceAll}
	if len(f.namespaces) > 0 {
		if !r.Namespaced {
			return nil
		}
		in = f.namespaces
	}
	for _, namespace := range in {
		pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
			return clients.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx, o)
		}))
		err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: f.selector}, func(item runtime.Object) error {
			obj, ok := item.(*unstructured.Unstructured)
			if !ok || !f.all && made(r, obj) {
				return nil
			}
			return t.put(r, clean(obj))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

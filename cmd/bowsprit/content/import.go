package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manifest"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// importFlags are the flags of "bowsprit import".
type importFlags struct {
	server        connect.Flags
	dryRun, force bool
	set           string
	prune         bool
	patience      time.Duration
	form          output.Form
}

// manager is the field manager of import.
const manager = "bowsprit-import"

// ImportCommand returns "bowsprit import".
func ImportCommand() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:   "import (FILE | DIRECTORY | -)...",
		Short: "Apply manifests, such as an export, to a server",
		Long: `Apply files, all YAML and JSON files of directories and their subdirectories, or stdin (-) to a server, with server-side
apply: first namespaces, then definitions, then the rest, once the definitions are served. Objects that are not in the
files stay unchanged; nothing is deleted without --prune.

With --set the objects get the label bowsprit.dev/import-set. With --prune the command then deletes the objects that an
earlier import put into the same set and that are not in the files anymore. It prunes nothing if a part of the import
fails or a resource cannot be listed. It keeps Namespaces, and definitions with objects that it does not prune.

If a part of a file cannot be read or applied, the command continues with the others and reports the file, the line and
the path of each.`,
		Example: `  bowsprit import ./state --dry-run
  bowsprit import ./state
  bowsprit import ./state --set=state --prune --dry-run
  helm template ./chart | bowsprit import -`,
		Args: arguments.Several("file or directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			all, err := read(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			server, err := flags.choose(cmd)
			if err != nil {
				return err
			}
			result, err := all.apply(cmd.Context(), server.Config, &flags)
			if err != nil {
				return err
			}
			return result.show(cmd.OutOrStdout(), flags.form)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.dryRun, "dry-run", false, "change nothing; objects of kinds that do not exist yet are left out")
	f.BoolVar(&flags.force, "force-conflicts", false, "take over fields that other managers set to other values")
	f.StringVar(&flags.set, "set", "", "label the objects as members of this set")
	f.BoolVar(&flags.prune, "prune", false, "delete the objects of --set that are not in the files")
	f.DurationVar(&flags.patience, "wait", time.Minute, "how long to wait for definitions to be served")
	flags.form.Bind(f)
	flags.server.Bind(f)
	return cmd
}

// check checks the flags of sets.
func (f *importFlags) check() error {
	if f.prune && f.set == "" {
		return exit.Usage(errors.New("--prune needs --set: it deletes other objects of that set"))
	}
	return exit.Usage(checkSet(f.set))
}

// choose returns the server. A dry run only reads.
func (f *importFlags) choose(cmd *cobra.Command) (*connect.Server, error) {
	switch {
	case f.dryRun:
		return f.server.Read(cmd)
	case f.form.ForPrograms():
		return f.server.Write(cmd, connect.CarriesData)
	}
	return f.server.Write(cmd, connect.ForPeople)
}

// document is an object of a file.
type document struct {
	from *manifest.Document
	obj  *unstructured.Unstructured
}

// The positions in which objects are applied. They are deleted in the opposite order.
const (
	namespaces = iota
	definitions
	others
)

// rank returns the position of a kind.
func rank(kind schema.GroupKind) int {
	switch kind.String() {
	case "Namespace":
		return namespaces
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return definitions
	}
	return others
}

func (d document) rank() int { return rank(d.obj.GroupVersionKind().GroupKind()) }

// Apply applies the objects of a text to a server as import does, and prints their number. name is the name of the
// text.
func Apply(ctx context.Context, config *rest.Config, name string, text io.Reader, out io.Writer) error {
	var set manifest.Set
	set.Read(name, text)
	var all documents
	all.take(name, &set)
	result, err := all.apply(ctx, config, &importFlags{patience: time.Minute})
	if err != nil {
		return err
	}
	return result.show(out, output.Text)
}

// documents is a named list of objects, with the problems of reading others.
type documents struct {
	name     string
	list     []document
	problems []error
}

// apply applies the objects. The result has the objects that failed; an error means that nothing was applied.
func (all *documents) apply(ctx context.Context, config *rest.Config, flags *importFlags) (*importResult, error) {
	if err := connect.CheckAnswers(ctx, config); err != nil { // else each object fails for the same reason
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	a := &applier{flags: flags, missing: map[schema.GroupVersionKind]error{}, uids: map[types.UID]bool{}}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	a.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	if a.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	result := &importResult{name: all.name, DryRun: flags.dryRun, Objects: []applied{}}
	result.unreadable(all.problems)
	for _, doc := range all.list {
		done, err := a.put(ctx, doc)
		result.add(doc, done, err)
	}
	if flags.prune {
		result.prune(ctx, config, flags, a.uids)
	}
	return result, nil
}

// read returns the objects of files and directories, in the order in which they are applied, and the problems of the
// others. An error means that there is nothing to apply.
func read(paths []string, stdin io.Reader) (all documents, err error) {
	set, err := manifest.Load(paths, stdin)
	if err != nil {
		return all, err
	}
	all.take(strings.Join(paths, ", "), set)
	if len(all.list) == 0 {
		return all, exit.List(errors.Join(append(all.problems, fmt.Errorf("%s has no YAML or JSON with objects", all.name))...))
	}
	return all, nil
}

// take takes the objects and problems of files.
func (all *documents) take(name string, set *manifest.Set) {
	all.name, all.problems = name, set.Problems
	for i := range set.Documents {
		d := &set.Documents[i]
		if err := d.CheckName(); err != nil {
			all.problems = append(all.problems, err)
			continue
		}
		all.list = append(all.list, document{d, &unstructured.Unstructured{Object: d.Object}})
	}
	slices.SortStableFunc(all.list, func(a, b document) int { return a.rank() - b.rank() })
}

// applier applies objects.
type applier struct {
	flags   *importFlags
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	objects dynamic.Interface
	missing map[schema.GroupVersionKind]error // kinds that the server does not have
	uids    map[types.UID]bool                // the applied objects
}

// put applies an object. The error is nil unless the outcome is failed.
func (a *applier) put(ctx context.Context, d document) (outcome, error) {
	clean(d.obj)
	join(d.obj, a.flags.set)
	mapping, err := a.mapping(ctx, d.obj)
	switch {
	case meta.IsNoMatchError(err) && a.flags.dryRun:
		return leftOut, nil
	case err != nil:
		return failed, err
	}
	var client dynamic.ResourceInterface = a.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := d.obj.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		client = a.objects.Resource(mapping.Resource).Namespace(namespace)
	}
	before, err := client.Get(ctx, d.obj.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return failed, err
	}
	isNew := err != nil
	if !isNew {
		if err := a.join(d.obj, before); err != nil {
			return failed, err
		}
	}
	options := metav1.ApplyOptions{FieldManager: manager, Force: a.flags.force}
	if a.flags.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	after, err := client.Apply(ctx, d.obj.GetName(), d.obj, options)
	switch {
	case apierrors.IsNotFound(err) && a.flags.dryRun: // its namespace
		return leftOut, nil
	case err != nil:
		return failed, err
	}
	a.uids[after.GetUID()] = true
	if d.rank() == definitions && !a.flags.dryRun {
		a.mapper.Reset()
		if err := a.established(ctx, client, d.obj.GetName()); err != nil {
			return failed, err
		}
	}
	switch {
	case isNew:
		return created, nil
	case sameContent(before, after) && setOf(before) == setOf(after):
		return unchanged, nil
	}
	return changed, nil
}

// sameContent compares two states of an object without the fields that the server adds.
func sameContent(before, after *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(clean(before.DeepCopy()).Object, clean(after.DeepCopy()).Object)
}

// mapping finds the resource of an object. Discovery may list a definition a moment after it is established.
func (a *applier) mapping(ctx context.Context, obj *unstructured.Unstructured) (m *meta.RESTMapping, err error) {
	kind := obj.GroupVersionKind()
	if err := a.missing[kind]; err != nil {
		return nil, err
	}
	find := func(context.Context) (bool, error) {
		if m, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version); !meta.IsNoMatchError(err) {
			return true, err
		}
		a.mapper.Reset()
		return false, nil
	}
	patience := 2 * time.Second // most likely the server does not have the kind at all
	if wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, find) != nil && err == nil {
		err = ctx.Err()
	}
	if meta.IsNoMatchError(err) {
		a.missing[kind] = err
	}
	return m, err
}

// established waits until a definition is served.
func (a *applier) established(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, a.flags.patience, true,
		func(ctx context.Context) (bool, error) {
			obj, err := client.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
			return slices.ContainsFunc(conditions, func(c any) bool {
				condition, _ := c.(map[string]any)
				return condition["type"] == "Established" && condition["status"] == "True"
			}), nil
		})
	if wait.Interrupted(err) {
		return fmt.Errorf("the definition is not served after %s; see its conditions for the reason", a.flags.patience)
	}
	return err
}

package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/files"
)

// importFlags are the flags of "bowsprit import".
type importFlags struct {
	server        connect.Flags
	dryRun, force bool
	patience      time.Duration
}

// manager is the field manager of import.
const manager = "bowsprit-import"

// ImportCommand returns "bowsprit import".
func ImportCommand() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:   "import DIRECTORY",
		Short: "Apply a directory of manifests, such as an export, to a server",
		Long: `Apply all YAML and JSON files of a directory and its subdirectories to a server, with server-side apply: first
namespaces, then definitions, then the rest, once the definitions are served. Objects that are not in the files stay
unchanged; nothing is deleted.

If a file cannot be applied, the command continues with the others.`,
		Example: `  bowsprit import ./state --dry-run
  bowsprit import ./state`,
		Args: arguments.One("directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := flags.choose(cmd)
			if err != nil {
				return err
			}
			return apply(cmd.Context(), server.Config, &flags, args[0], cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.dryRun, "dry-run", false, "change nothing; objects of kinds that do not exist yet are left out")
	f.BoolVar(&flags.force, "force-conflicts", false, "take over fields that other managers set to other values")
	f.DurationVar(&flags.patience, "wait", time.Minute, "how long to wait for definitions to be served")
	flags.server.Bind(f)
	return cmd
}

// choose returns the server. A dry run only reads.
func (f *importFlags) choose(cmd *cobra.Command) (*connect.Server, error) {
	if f.dryRun {
		return f.server.Read(cmd)
	}
	return f.server.Write(cmd, connect.ForPeople)
}

// document is an object of a file.
type document struct {
	file string
	obj  *unstructured.Unstructured
}

// rank is the position in which objects are applied.
func (d document) rank() int {
	switch d.obj.GroupVersionKind().GroupKind().String() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return 1
	}
	return 2
}

// apply applies the objects below a directory.
func apply(ctx context.Context, config *rest.Config, flags *importFlags, directory string, out io.Writer) error {
	documents, err := read(directory)
	if err != nil {
		return err
	}
	return documents.apply(ctx, config, flags, out)
}

// Apply applies the objects of a text to a server as import does, and prints their number. name is the name of the
// text.
func Apply(ctx context.Context, config *rest.Config, name string, text io.Reader, out io.Writer) error {
	objects, err := documentsOf(text)
	if err != nil {
		return err
	}
	all := documents{name: name}
	for _, obj := range objects {
		all.list = append(all.list, document{name, obj})
	}
	all.sort()
	return all.apply(ctx, config, &importFlags{patience: time.Minute}, out)
}

// documents is a named list of objects.
type documents struct {
	name string
	list []document
}

// sort brings the objects into the order in which they are applied.
func (all *documents) sort() {
	slices.SortStableFunc(all.list, func(a, b document) int { return a.rank() - b.rank() })
}

func (all *documents) apply(ctx context.Context, config *rest.Config, flags *importFlags, out io.Writer) error {
	config.QPS, config.Burst = 200, 400
	a := &applier{flags: flags, missing: map[schema.GroupVersionKind]error{}}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	a.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	if a.objects, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	var failures []error
	for _, doc := range all.list {
		if err := a.put(ctx, doc); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", doc.file, err))
		}
	}
	dry := ""
	if flags.dryRun {
		dry = fmt.Sprintf("; nothing was written, and %d objects of missing kinds or namespaces were left out",
			a.left)
	}
	fmt.Fprintf(out, "%s: %d created, %d changed, %d unchanged, %d failed%s.\n", all.name, a.created, a.changed, a.same,
		len(failures), dry)
	return errors.Join(failures...)
}

// read returns the objects in the files of a directory, in the order in which they are applied.
func read(directory string) (all documents, err error) {
	all.name = directory
	err = filepath.WalkDir(directory, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != directory:
			return fs.SkipDir
		case e.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			return nil
		}
		file, err := files.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		objects, err := documentsOf(file)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, obj := range objects {
			all.list = append(all.list, document{path, obj})
		}
		return nil
	})
	if err == nil && len(all.list) == 0 {
		err = fmt.Errorf("%s has no YAML or JSON files with objects", directory)
	}
	all.sort()
	return all, err
}

// documentsOf returns the objects in a file. It splits lists.
func documentsOf(in io.Reader) (all []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for {
		obj := &unstructured.Unstructured{}
		switch err := decoder.Decode(&obj.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(obj.Object) == 0:
			continue
		case obj.GetAPIVersion() == "" || obj.GetKind() == "":
			return nil, errors.New("an object has no apiVersion or no kind")
		case obj.IsList():
			err := obj.EachListItem(func(item runtime.Object) error {
				if one, ok := item.(*unstructured.Unstructured); ok {
					all = append(all, one)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		case obj.GetName() == "":
			return nil, fmt.Errorf("a %s has no name", obj.GetKind())
		default:
			all = append(all, obj)
		}
	}
}

// applier applies objects, and counts.
type applier struct {
	flags                  *importFlags
	mapper                 *restmapper.DeferredDiscoveryRESTMapper
	objects                dynamic.Interface
	missing                map[schema.GroupVersionKind]error // kinds that the server does not have
	created, changed, same int
	left                   int // in a dry run, objects that need other objects of the import
}

func (a *applier) put(ctx context.Context, d document) error {
	clean(d.obj)
	mapping, err := a.mapping(ctx, d.obj)
	switch {
	case meta.IsNoMatchError(err) && a.flags.dryRun:
		a.left++
		return nil
	case err != nil:
		return err
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
		return err
	}
	isNew := err != nil
	options := metav1.ApplyOptions{FieldManager: manager, Force: a.flags.force}
	if a.flags.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	after, err := client.Apply(ctx, d.obj.GetName(), d.obj, options)
	switch {
	case apierrors.IsNotFound(err) && a.flags.dryRun: // its namespace
		a.left++
	case err != nil:
		return err
	case isNew:
		a.created++
	case sameContent(before, after):
		a.same++
	default:
		a.changed++
	}
	if d.rank() == 1 && !a.flags.dryRun {
		a.mapper.Reset()
		return a.established(ctx, client, d.obj.GetName())
	}
	return nil
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

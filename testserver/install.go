package testserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// fieldManager owns the fields of objects that this package applies.
const fieldManager = "testserver"

// Install applies the objects in YAML and JSON files. A path is a file, or a directory, of which Install reads the
// files .yaml, .yml and .json, without subdirectories. Definitions come first, then namespaces, then other objects in
// the order of the files. An object of a namespaced kind without a namespace goes to "default". Files of kustomize are
// skipped.
//
// The kinds of the definitions are served when Install returns. Install reports all objects that the server refuses,
// each with its file.
func (s *Server) Install(ctx context.Context, paths ...string) error {
	objects, err := readObjects(paths)
	if err != nil {
		return err
	}
	return applyAll(ctx, s.RESTConfig(), objects)
}

// object is an object with the file that it comes from.
type object struct {
	*unstructured.Unstructured
	file string
}

// readObjects returns the objects in the files at paths. Its error lists all unreadable ones.
func readObjects(paths []string) (all []object, err error) {
	if len(paths) == 0 {
		return nil, errors.New("no paths: name a file or a directory with objects")
	}
	var problems []error
	for _, path := range paths {
		files, err := filesAt(path)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, file := range files {
			objects, err := readFile(file)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", file, err))
			}
			all = append(all, objects...)
		}
	}
	return all, errors.Join(problems...)
}

// filesAt returns the file at path, or the files of the directory at path.
func filesAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if extension := filepath.Ext(e.Name()); !e.IsDir() && slices.Contains(extensions, extension) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no files %s: name the directory with the objects", path,
			strings.Join(extensions, ", "))
	}
	return files, nil
}

// extensions are the endings of the files that are read from a directory.
var extensions = []string{".yaml", ".yml", ".json"}

// readFile returns the objects of a file and of the lists in it.
func readFile(file string) (all []object, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		objects, err := parse(document)
		if err != nil {
			return all, fmt.Errorf("document %d: %w", number, err)
		}
		for _, o := range objects {
			all = append(all, object{o, file})
		}
	}
}

// parse returns the object of a document, the objects of a list, or nothing for an empty document and for kustomize's.
func parse(document []byte) ([]*unstructured.Unstructured, error) {
	fields := map[string]any{}
	if err := yaml.UnmarshalStrict(document, &fields); err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: fields}
	switch {
	case len(fields) == 0 || strings.HasPrefix(o.GetAPIVersion(), "kustomize.config.k8s.io/"):
		return nil, nil
	case o.GetAPIVersion() == "" || o.GetKind() == "":
		return nil, errors.New("it has no apiVersion or no kind: name files with objects only")
	}
	json, err := runtime.Encode(unstructured.UnstructuredJSONScheme, o) // numbers as in decoded JSON
	if err != nil {
		return nil, err
	}
	decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, json)
	if err != nil {
		return nil, err
	}
	list, ok := decoded.(*unstructured.UnstructuredList)
	if !ok {
		return []*unstructured.Unstructured{decoded.(*unstructured.Unstructured)}, nil
	}
	items := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		items[i] = &list.Items[i]
	}
	return items, nil
}

// rank orders definitions and namespaces before other objects.
func rank(o object) int {
	return slices.Index([]string{"Namespace", "CustomResourceDefinition"}, o.GetKind())
}

// applyAll applies objects. Its error lists all that the server refuses.
func applyAll(ctx context.Context, config *rest.Config, objects []object) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))
	slices.SortStableFunc(objects, func(a, b object) int { return rank(b) - rank(a) })
	var problems []error
	for _, o := range objects {
		if err := apply(ctx, client, mapper, o.Unstructured); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s %s: %w", o.file, o.GetKind(), o.GetName(), err))
		}
	}
	return errors.Join(problems...)
}

func apply(
	ctx context.Context, client dynamic.Interface, mapper meta.ResettableRESTMapper, o *unstructured.Unstructured,
) error {
	kind := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapper.Reset() // a definition before has added the kind
		mapping, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return err
	}
	var target dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if o.GetNamespace() == "" {
			o.SetNamespace(metav1.NamespaceDefault)
		}
		target = client.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	o.SetManagedFields(nil) // of an exported object; apply refuses them
	_, err = target.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

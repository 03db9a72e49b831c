package extension_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/extension"
)

// Boat is the kind of the examples.
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              BoatSpec `json:"spec"`
}

// BoatSpec describes a boat.
type BoatSpec struct {
	Masts int `json:"masts" schema:"minimum=0,maximum=5,default=1"`
}

// boatManifest is a definition of the same kind.
const boatManifest = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            default: {}
            properties:
              masts: {type: integer, default: 1}
`

// serve starts a server with a kind, and returns a configuration for clients and the function that stops the server.
func serve(kind extension.Kind) (client *rest.Config, stop func()) {
	kinds, err := extension.In(kind)
	if err != nil {
		log.Fatal(err)
	}
	server, err := bowsprit.New(bowsprit.Config{Ephemeral: true, Extensions: []bowsprit.Extension{kinds}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	select {
	case <-server.Ready():
	case err := <-ended:
		log.Fatal(err)
	}
	return server.RESTConfig(), func() {
		cancel()
		if err := <-ended; err != nil {
			log.Fatal(err)
		}
	}
}

// fleet returns a client for boats of the namespace default.
func fleet(c *rest.Config) dynamic.ResourceInterface {
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		log.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boats"}).
		Namespace("default")
}

// boat returns an object.
func boat(name string, masts int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Boat", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"masts": masts},
	}}
}

// A Go type is a kind. The tags of its fields are the schema.
func ExampleOf() {
	client, stop := serve(extension.Of("example.com/v1", extension.Type[Boat]{}))
	defer stop()
	for _, masts := range []int64{3, 7} {
		_, err := fleet(client).Create(context.Background(), boat("schooner", masts), metav1.CreateOptions{})
		fmt.Println(masts, "masts are invalid:", apierrors.IsInvalid(err))
	}
	// Output:
	// 3 masts are invalid: false
	// 7 masts are invalid: true
}

// Validate checks rules that a schema cannot express.
func ExampleType() {
	kind := extension.Of("example.com/v1", extension.Type[Boat]{
		Validate: func(obj, _ *Boat) field.ErrorList {
			if obj.Name == "raft" && obj.Spec.Masts > 0 {
				return field.ErrorList{field.Forbidden(field.NewPath("spec", "masts"), "a raft has no mast")}
			}
			return nil
		},
	})
	client, stop := serve(kind)
	defer stop()
	_, err := fleet(client).Create(context.Background(), boat("raft", 1), metav1.CreateOptions{})
	fmt.Println(err)
	// Output: Boat.example.com "raft" is invalid: spec.masts: Forbidden: a raft has no mast
}

// A manifest is a kind without a Go type.
func ExampleIn() {
	client, stop := serve(extension.Kind{Manifest: boatManifest})
	defer stop()
	object := boat("sloop", 1)
	unstructured.RemoveNestedField(object.Object, "spec", "masts")
	made, err := fleet(client).Create(context.Background(), object, metav1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	masts, _, _ := unstructured.NestedInt64(made.Object, "spec", "masts")
	fmt.Println("masts:", masts)
	// Output: masts: 1
}

// Default fills in fields from the rest of an object.
func ExampleKind() {
	client, stop := serve(extension.Kind{
		Manifest: boatManifest,
		Default: func(obj *unstructured.Unstructured) {
			if obj.GetName() == "raft" {
				_ = unstructured.SetNestedField(obj.Object, int64(0), "spec", "masts")
			}
		},
	})
	defer stop()
	made, err := fleet(client).Create(context.Background(), boat("raft", 1), metav1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	masts, _, _ := unstructured.NestedInt64(made.Object, "spec", "masts")
	fmt.Println("masts:", masts)
	// Output: masts: 0
}

// Objects of a read-only storage come from another system.
func ExampleReadOnly() {
	client, stop := serve(extension.Kind{
		Manifest: boatManifest, Poll: time.Minute,
		Storage: extension.ReadOnly(func(context.Context) iter.Seq2[*unstructured.Unstructured, error] {
			return func(yield func(*unstructured.Unstructured, error) bool) {
				for _, name := range []string{"ketch", "yawl"} {
					object := boat(name, 2)
					object.SetNamespace("default")
					if !yield(object, nil) {
						return
					}
				}
			}
		}),
	})
	defer stop()
	list, err := fleet(client).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, object := range list.Items {
		fmt.Println(object.GetName())
	}
	// Output:
	// ketch
	// yawl
}

// A path below an object is a verb of the kind.
func ExamplePath() {
	greet := func(_ context.Context, obj *unstructured.Unstructured, w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, obj.GetName()+" has left the harbour")
		return err
	}
	config, stop := serve(extension.Kind{
		Manifest: boatManifest, Paths: map[string]extension.Path{"log": {Serve: greet}},
	})
	defer stop()
	if _, err := fleet(config).Create(context.Background(), boat("cutter", 1), metav1.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := client.Get(config.Host + "/apis/example.com/v1/namespaces/default/boats/cutter/log")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Println(string(text), err)
	// Output: cutter has left the harbour <nil>
}

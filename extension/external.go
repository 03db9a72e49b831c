package extension

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/feature/extension/external"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	cluster "github.com/bowsprit/bowsprit/internal/storage/store/external"
)

var (
	_ Watcher = (*external.Etcd)(nil)
	_ Watcher = (*external.Remote)(nil)
)

// Etcd is an etcd for the objects of one kind, besides the server's own.
type Etcd struct {
	// Servers are the URLs of its members, such as "https://10.0.0.1:2379".
	Servers []string
	// Prefix begins the keys of the objects: Prefix/NAMESPACE/NAME or Prefix/NAME. The values are JSON. Each kind needs
	// a prefix of its own.
	Prefix string
	// CAFile, CertFile and KeyFile are PEM files for https; CertFile and KeyFile go together.
	CAFile, CertFile, KeyFile string
}

// Storage returns the etcd as a Storage. The server connects to it at its start, and compacts its history every five
// minutes, as kube-apiserver does with its own.
func (e Etcd) Storage() (Storage, error) {
	if len(e.Servers) == 0 {
		return nil, errors.New("an etcd needs servers")
	}
	if e.Prefix == "" {
		return nil, errors.New("an etcd needs a prefix, under which the objects are")
	}
	if (e.CertFile == "") != (e.KeyFile == "") {
		return nil, errors.New("an etcd needs both of a certificate and its key, or neither")
	}
	return external.NewEtcd(store.Config{Prefix: e.Prefix, Etcd: cluster.Config{
		Endpoints: e.Servers, CAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile,
	}}), nil
}

// Remote stores the objects of a kind as objects of another API server, or of another kind of the server in front: a
// kind that is a simpler form of another kind, or that lives in ConfigMaps.
//
// The object there has the same name, namespace, labels and annotations. An annotation there holds the other metadata
// (uid, finalizers, owners and so on), so the other server does not act on them. Objects that other clients create
// there appear here.
type Remote struct {
	// Server is the other server.
	Server *rest.Config
	// Resource and Kind name the kind there.
	Resource schema.GroupVersionResource
	Kind     string // see Resource
	// Namespace is the namespace of all objects there, if the kind here is cluster-scoped and the kind there is
	// namespaced.
	Namespace string
	// Prefix begins the names there.
	Prefix string
	// Labels are added to the objects there; objects without these labels do not belong to the kind.
	Labels map[string]string
	// Status is true if the kind there has a status subresource: its status is then written by it.
	Status bool
	// Load converts an object there into an object here, without metadata. It returns nil for an object that does not
	// belong to the kind. Without Load and Save the kinds have the same fields.
	Load func(there *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Save writes the fields of obj into there; the server fills in the metadata afterwards. there is empty for a new
	// object. Save keeps fields of there that obj does not determine.
	Save func(obj, there *unstructured.Unstructured) error
}

// Storage returns the other server as a Storage.
func (r Remote) Storage() (Storage, error) {
	if r.Server == nil || r.Resource.Resource == "" || r.Kind == "" {
		return nil, errors.New("objects of another API server need the server, the resource and the kind there")
	}
	if (r.Load == nil) != (r.Save == nil) {
		return nil, errors.New("objects of another API server need both of Load and Save, or neither")
	}
	server := rest.CopyConfig(r.Server)
	server.QPS = -1
	client, err := dynamic.NewForConfig(server)
	if err != nil {
		return nil, fmt.Errorf("objects of another API server: %w", err)
	}
	return &external.Remote{
		Client: client, Resource: r.Resource, Kind: r.Kind, Namespace: r.Namespace, Prefix: r.Prefix,
		Labels: r.Labels, Status: r.Status, Load: r.Load, Save: r.Save,
	}, nil
}

package aggregation

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// documentStore saves the documents of other servers in files, so that they are known after a restart even if the
// servers are down. Without a directory it saves nothing.
type documentStore struct{ dir string }

func newDocumentStore(dataDir string) *documentStore {
	if dataDir == "" {
		return &documentStore{}
	}
	return &documentStore{dir: filepath.Join(dataDir, "aggregation")}
}

// file is the saved state of an APIService, with its OpenAPI documents.
type file struct {
	// UID is the uid of the APIService: a recreated one may be about another server.
	UID string `json:"uid"`
	// Resources are the resources of the version, as in documents.
	Resources json.RawMessage `json:"resources"`
	V3        *savedDocument  `json:"v3,omitempty"`
	V2        *savedDocument  `json:"v2,omitempty"`
}

// savedDocument is an OpenAPI document, compressed.
type savedDocument struct {
	Hash string `json:"hash"`
	ETag string `json:"etag,omitempty"`
	Data []byte `json:"data"` // gzip
}

func compress(hash, etag string, doc []byte) *savedDocument {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(doc) // writing to a buffer does not fail
	_ = z.Close()
	return &savedDocument{Hash: hash, ETag: etag, Data: bytes.Clone(b.Bytes())}
}

// document is k as the catalog has it.
func (k *savedDocument) document() catalog.Document {
	if k == nil {
		return catalog.Document{}
	}
	return catalog.Document{Hash: k.Hash, Read: func() ([]byte, error) {
		z, err := gzip.NewReader(bytes.NewReader(k.Data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	}}
}

func (k *documentStore) path(name string) string { return filepath.Join(k.dir, name+".json") }

// write replaces the saved state of an APIService.
func (k *documentStore) write(name string, f *file) error {
	if k.dir == "" {
		return nil
	}
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(k.dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), k.path(name))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}

// read returns the saved state of an APIService, or nil if there is none.
func (k *documentStore) read(name string) *file {
	if k.dir == "" {
		return nil
	}
	data, err := os.ReadFile(k.path(name))
	if err != nil {
		return nil
	}
	f := &file{}
	if json.Unmarshal(data, f) != nil {
		return nil
	}
	return f
}

// remove forgets an APIService.
func (k *documentStore) remove(name string) {
	if k.dir != "" {
		_ = os.Remove(k.path(name)) // usually it does not exist
	}
}

// save saves the documents of the other server.
func (a *aggregator) save(r *remote, d *documents) {
	err := a.keep.write(r.name, &file{UID: r.uid, Resources: d.raw, V3: d.v3, V2: d.v2})
	if err != nil {
		a.host.Log.Warn("the documents of an aggregated API cannot be saved; they will be missing after a restart",
			"apiService", r.name, "error", err)
	}
}

// restore restores the saved state of all existing APIServices. It is called before the first request.
func (a *aggregator) restore() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, r := range a.mu.remotes {
		f := a.keep.read(name)
		if f == nil || f.UID != r.uid || r.documents.Load().raw != nil {
			continue
		}
		var resources []apidiscoveryv2.APIResourceDiscovery
		if json.Unmarshal(f.Resources, &resources) == nil {
			r.documents.Store(&documents{raw: f.Resources, resources: resources, stale: true, v3: f.V3, v2: f.V2})
		}
	}
	a.publishLocked()
}

package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// remoteV2 is other servers' part of the v2 document, joined without duplicate names.
type remoteV2 struct {
	Paths       map[string]json.RawMessage `json:"paths"`
	Definitions map[string]json.RawMessage `json:"definitions"`
	Parameters  map[string]json.RawMessage `json:"parameters,omitempty"`
}

// remotesV2 returns the documents of other servers, in the order of their groups and versions.
func remotesV2(groups []*catalog.Group) (docs []catalog.Document) {
	for _, g := range groups {
		for _, gv := range g.Versions {
			if gv.Remote != nil && gv.Remote.V2.Hash != "" {
				docs = append(docs, gv.Remote.V2)
			}
		}
	}
	return docs
}

// joinV2 joins documents. It omits names for which known is true: this server's document has a definition, or a
// parameter, of that name, from Kubernetes' common libraries. If two servers use a name for different definitions, the
// second one is renamed.
func joinV2(docs []catalog.Document, known func(name string) bool) (*remoteV2, error) {
	all := &remoteV2{
		Paths: map[string]json.RawMessage{}, Definitions: map[string]json.RawMessage{},
		Parameters: map[string]json.RawMessage{},
	}
	for _, d := range docs {
		data, err := d.Read()
		if err != nil {
			return nil, fmt.Errorf("document of another server: %w", err)
		}
		one := &remoteV2{}
		if err := json.Unmarshal(data, one); err != nil {
			return nil, fmt.Errorf("document of another server: %w", err)
		}
		var clash bool
		for name, raw := range one.Definitions {
			there := all.Definitions[name]
			clash = clash || there != nil && !known(name) && !bytes.Equal(there, raw)
		}
		if clash {
			if one, err = one.rename(all, data, known); err != nil {
				return nil, err
			}
		}
		all.add(one, known)
	}
	return all, nil
}

// add adds the missing members of one.
func (all *remoteV2) add(one *remoteV2, known func(name string) bool) {
	for name, raw := range one.Paths {
		if all.Paths[name] == nil {
			all.Paths[name] = raw
		}
	}
	for name, raw := range one.Definitions {
		if !known(name) {
			all.Definitions[name] = raw
		}
	}
	for name, raw := range one.Parameters {
		if !known(name) {
			all.Parameters[name] = raw
		}
	}
}

// rename renames definitions of a document that conflict with others of the same name, by appending a number, like
// kube-openapi's aggregator.
func (one *remoteV2) rename(all *remoteV2, data []byte, known func(name string) bool) (*remoteV2, error) {
	renamed := map[string]string{}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range one.Definitions {
			if !yield(name) {
				return
			}
		}
	}) {
		there := all.Definitions[name]
		if there == nil || known(name) || bytes.Equal(there, one.Definitions[name]) {
			continue
		}
		for n := 2; ; n++ {
			next := fmt.Sprintf("%s_v%d", name, n)
			if all.Definitions[next] == nil && one.Definitions[next] == nil {
				renamed[name] = next
				break
			}
		}
	}
	for name, next := range renamed {
		data = bytes.ReplaceAll(data, []byte(`"#/definitions/`+name+`"`), []byte(`"#/definitions/`+next+`"`))
	}
	out := &remoteV2{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, err
	}
	for name, next := range renamed {
		out.Definitions[next] = out.Definitions[name]
		delete(out.Definitions, name)
	}
	return out, nil
}

// protobuf encodes the document.
func (all *remoteV2) protobuf() ([]byte, error) {
	data, err := json.Marshal(struct {
		Swagger string `json:"swagger"`
		Info    info   `json:"info"`
		*remoteV2
	}{"2.0", info{"Kubernetes", ""}, all})
	if err != nil {
		return nil, err
	}
	doc, err := openapi_v2.ParseDocument(data)
	if err != nil {
		return nil, fmt.Errorf("convert OpenAPI v2 of other servers to protobuf: %w", err)
	}
	doc.Swagger, doc.Info = "", nil
	return proto.Marshal(doc)
}

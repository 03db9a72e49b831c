package convert

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// How the store keeps an object. JSON is 0, and needs no decoding.
const (
	asJSON watchcache.Encoding = iota
	asCBOR
	asProtobuf
	asYAML
	asCompressed
)

// MediaTypes are those in which built-in kinds can be stored.
func MediaTypes() []string { return []string{codec.JSON, codec.Protobuf, codec.YAML, CompressedJSON} }

// alwaysJSON are the groups whose kinds are JSON whatever the others are: in kube-apiserver servers of their own have
// them, which know no other encoding.
var alwaysJSON = map[string]bool{"apiextensions.k8s.io": true, "apiregistration.k8s.io": true}

// Storing encodes objects for the store and decodes what lies there. The zero value and nil write JSON. It is safe for
// concurrent use.
type Storing struct {
	media  watchcache.Encoding // of built-in kinds
	custom watchcache.Encoding // of custom objects
	kinds  map[string]*catalog.Resource
	recent *recent // nil if all is JSON
}

// StoringOptions say how objects are stored.
type StoringOptions struct {
	// Media is one of MediaTypes, "" being JSON: what built-in kinds are stored in, if they have such a form.
	Media string
	// CBOR is true if custom objects are CBOR. Otherwise they are JSON.
	CBOR bool
}

// NewStoring returns what encodes and decodes objects. resources are the built-in kinds, and whatever else is stored as
// they are.
func NewStoring(resources []*catalog.Resource, o StoringOptions) *Storing {
	s := &Storing{kinds: map[string]*catalog.Resource{}}
	for _, r := range resources {
		if !r.Virtual && !r.Secondary {
			s.kinds[r.Prefix] = r
		}
	}
	switch o.Media {
	case codec.Protobuf:
		s.media = asProtobuf
	case codec.YAML:
		s.media = asYAML
	case CompressedJSON:
		s.media = asCompressed
	}
	if o.CBOR {
		s.custom = asCBOR
	}
	if s.media != asJSON || s.custom != asJSON {
		s.recent = newRecent()
	}
	return s
}

// Encode returns the bytes that go into the store for the JSON of an object of the resource and the documents within it
// (what Keep returned), and what they are. What has no other form stays JSON, which is read as well.
func (s *Storing) Encode(
	r *catalog.Resource, raw []byte, documents ...string,
) ([]byte, watchcache.Encoding) {
	doc := raw
	if r.Form != nil {
		formed, err := r.Form.Encode(raw)
		if err != nil {
			return raw, asJSON
		}
		doc = formed
	}
	as := s.wanted(r)
	var out []byte
	var err error
	switch as {
	case asJSON, asCompressed:
		if into := typeStored(r); into != nil && len(documents) > 0 {
			if out, err = codec.WithDocuments(doc, into(), documents); err == nil {
				doc = out
			}
		}
		if as == asJSON {
			return doc, asJSON
		}
		out, err = compress(doc), nil
	case asCBOR:
		out, err = codec.ToCBOR(doc)
	case asProtobuf:
		into := typeStored(r)
		if into == nil {
			return doc, asJSON
		}
		out, err = codec.ToProtobuf(doc, into(), documents...)
	case asYAML:
		out, err = codec.ToYAML(doc)
	}
	if err != nil {
		return doc, asJSON
	}
	if r.Form == nil || r.Form.Version == "" { // else the store gives back what another version holds of the object
		s.recent.keep(out, raw, documents)
	}
	return out, as
}

// Keep returns the documents within an object of the resource as the store gives them back, nil if its JSON says it.
// raw is that JSON, which is about to be stored; what it has may be among the documents that the request has sent, or
// else among those that are there. Protobuf keeps them as they are, JSON compact, YAML not at all, as in Kubernetes.
func (s *Storing) Keep(r *catalog.Resource, raw []byte, sent, there []string) []string {
	if there == nil && codec.Verbatim(sent) == nil {
		return nil
	}
	as := s.wanted(r)
	if as == asCBOR || as == asYAML {
		return nil
	}
	into, documents := r.Storage.New(), slices.Concat(sent, there)
	if as != asProtobuf {
		compact, err := codec.WithDocuments(raw, into, documents)
		if err != nil {
			return nil
		}
		raw, documents, into = compact, nil, r.Storage.New()
	}
	if json.Unmarshal(raw, into) != nil {
		return nil
	}
	codec.SetDocuments(into, documents)
	return codec.Verbatim(codec.Documents(into, nil))
}

// EncodeBelow is Encode for the kind whose objects lie below a prefix. What lies below another is JSON.
func (s *Storing) EncodeBelow(prefix string, raw []byte) []byte {
	if s == nil || s.kinds[prefix] == nil {
		return raw
	}
	out, _ := s.Encode(s.kinds[prefix], raw)
	return out
}

// Stale reports whether an object of the resource, which is stored in one encoding, would be in another one today. read
// returns its JSON.
func (s *Storing) Stale(r *catalog.Resource, as watchcache.Encoding, read func() []byte) bool {
	if as == s.wanted(r) {
		return false
	}
	_, today := s.Encode(r, read()) // what has no other form is JSON all the same
	return as != today
}

// wanted is how objects of the resource are to be stored, if they have such a form.
func (s *Storing) wanted(r *catalog.Resource) watchcache.Encoding {
	switch {
	case s == nil:
		return asJSON
	case r.Custom():
		return s.custom
	case alwaysJSON[r.Group]:
		return asJSON
	}
	return s.media
}

// Decode makes JSON of what lies in the store under a resource's prefix, and says what it was: what Encode has written,
// whatever the settings were then, and what kube-apiserver stores. JSON comes back as it is.
func (s *Storing) Decode(prefix string, value []byte) (out watchcache.Decoded, err error) {
	kind, as := s.kinds[prefix], encodingOf(value)
	if kind == nil && as != asCBOR { // a custom kind has no other form
		return watchcache.Decoded{JSON: value}, nil
	}
	out.JSON, out.Encoding = value, as
	if as != asJSON {
		if known, documents := s.recent.take(value); known != nil {
			out.JSON, out.Documents = known, documents
			return out, nil
		}
	}
	switch as {
	case asJSON:
		out.JSON, out.Documents = withoutDocuments(kind, value)
	case asCompressed:
		if value, err = decompress(value); err == nil {
			out.JSON, out.Documents = withoutDocuments(kind, value)
		}
	case asCBOR:
		out.JSON, err = jsonOfCBOR(value)
	case asProtobuf:
		out.JSON, out.Documents, err = jsonOfProtobuf(kind, value)
	case asYAML:
		out.JSON, err = codec.FromYAML(value)
	}
	if err == nil && kind != nil && kind.Form != nil {
		out.JSON, err = kind.Form.Decode(bytes.TrimSpace(out.JSON))
	}
	return out, err
}

// encodingOf says what a stored value is. What is nothing else is JSON, or no object.
func encodingOf(value []byte) watchcache.Encoding {
	switch {
	case len(value) > 0 && value[0] == '{':
		return asJSON
	case codec.TaggedCBOR(value):
		return asCBOR
	case codec.InEnvelope(value):
		return asProtobuf
	case bytes.HasPrefix(value, []byte(compressedMagic)):
		return asCompressed
	case bytes.HasPrefix(value, []byte("apiVersion: ")), bytes.Contains(value, []byte("\napiVersion: ")):
		return asYAML // whose fields are sorted, so that others may come first
	}
	return asJSON
}

// typeStored returns what makes the Go type of a kind's objects as they are encoded, nil if they have none. A version
// that is none of the kind's has the same fields as the one that objects are stored in.
func typeStored(r *catalog.Resource) func() any {
	if r.Form != nil {
		if v := r.Version(r.Form.Version); v != nil {
			return v.New
		}
	}
	return r.Storage.New
}

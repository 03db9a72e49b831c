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

// MediaTypes returns the supported encodings of stored built-in kinds.
func MediaTypes() []string { return []string{codec.JSON, codec.Protobuf, codec.YAML, CompressedJSON} }

// alwaysJSON lists groups that are always stored as JSON: in kube-apiserver separate components serve them, which
// support no other encoding.
var alwaysJSON = map[string]bool{"apiextensions.k8s.io": true, "apiregistration.k8s.io": true}

// Storing encodes objects for the store and decodes stored values. The zero value and nil write JSON. It is safe for
// concurrent use.
type Storing struct {
	media  watchcache.Encoding // of built-in kinds
	custom watchcache.Encoding // of custom objects
	kinds  map[string]*catalog.Resource
	recent *recent // nil if all is JSON
	// readable reports whether objects of an apiVersion can be read; nil if all can.
	readable func(apiVersion string) bool
}

// StoringOptions selects the encoding of stored objects.
type StoringOptions struct {
	// Media is one of MediaTypes, "" means JSON: the encoding of built-in kinds that support it.
	Media string
	// CBOR selects CBOR for custom objects; otherwise they are JSON.
	CBOR bool
	// Readable reports whether stored objects of built-in kinds can be read in an apiVersion. Nil means in each.
	Readable func(apiVersion string) bool
}

// NewStoring returns a Storing. resources are the built-in kinds, and other kinds with the same encoding.
func NewStoring(resources []*catalog.Resource, o StoringOptions) *Storing {
	s := &Storing{kinds: map[string]*catalog.Resource{}, readable: o.Readable}
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

// Encode returns the bytes to store for an object's JSON and the documents within it (the result of Keep), and their
// encoding. Objects without another form stay JSON, which can always be read.
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
	if r.Form == nil || r.Form.Version == "" { // otherwise the stored form does not contain the whole object
		s.recent.keep(out, raw, documents)
	}
	return out, as
}

// Keep returns the documents within an object as the store will return them, nil if its JSON suffices. raw is the JSON
// about to be stored; its documents come from the request (sent) or the stored object (there). As in Kubernetes,
// protobuf keeps their bytes, JSON compacts them, and YAML loses them.
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

// EncodeBelow is Encode for the kind with objects below a prefix. Values below other prefixes are JSON.
func (s *Storing) EncodeBelow(prefix string, raw []byte) []byte {
	if s == nil || s.kinds[prefix] == nil {
		return raw
	}
	out, _ := s.Encode(s.kinds[prefix], raw)
	return out
}

// Stale reports whether an object stored in one encoding would now get another. read returns its JSON.
func (s *Storing) Stale(r *catalog.Resource, as watchcache.Encoding, read func() []byte) bool {
	if as == s.wanted(r) {
		return false
	}
	_, today := s.Encode(r, read()) // objects without another form are JSON anyway
	return as != today
}

// wanted returns the configured encoding of the resource, for objects that support it.
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

// Decode decodes a stored value below a resource's prefix to JSON, and returns its encoding. It accepts values from
// Encode under any settings, and from kube-apiserver. JSON is returned unchanged.
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
	if as == asCompressed {
		if value, err = decompress(value); err != nil {
			return out, err
		}
	}
	if kind != nil && s.readable != nil {
		if err := s.check(kind, value); err != nil {
			return out, err
		}
	}
	switch as {
	case asJSON, asCompressed:
		out.JSON, out.Documents = withoutDocuments(kind, value)
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

// encodingOf detects the encoding of a stored value. The default is JSON, valid or not.
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
		return asYAML // its fields are sorted, so others may come first
	}
	return asJSON
}

// typeStored returns a constructor for the Go type of a kind's stored objects, nil if there is none. An unknown version
// has the same fields as the storage version.
func typeStored(r *catalog.Resource) func() any {
	if r.Form != nil {
		if v := r.Version(r.Form.Version); v != nil {
			return v.New
		}
	}
	return r.Storage.New
}

package rest

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Protobuf and CBOR responses are encoded from the JSON form. An object's binary form is cached in its entry, so that
// lists copy it like JSON. Rarer documents (metadata alone, a Scale, a Status) are encoded each time.

// message returns a new Go value of the type of the form's documents, nil if there is none.
func (f form) message(c *verb.Call) any {
	switch {
	case f.As != "":
		return &metav1.PartialObjectMetadata{}
	case c.Version.New != nil:
		return c.Version.New()
	}
	return nil
}

// writeDocument responds with a JSON document. In protobuf it becomes a message of into's type; into is a new value of
// that type.
func writeDocument(w http.ResponseWriter, r *http.Request, doc []byte, as answer, into any) (err error) {
	r, span := startEncoding(r, as.form)
	defer span.End()
	if a := request.RecordOf(r.Context()); a != nil {
		recordAnswer(a, doc, into)
	}
	switch {
	case as.Type == codec.Protobuf:
		doc, err = codec.ToProtobuf(doc, into, as.documents...)
	case len(as.documents) > 0 && as.As == "":
		doc, err = codec.WithDocuments(doc, into, as.documents)
	}
	if err != nil {
		return err
	}
	codec.WriteObject(w, r, as.code, doc, as.plain())
	return nil
}

// binaryKey identifies the binary form of an entry in one version. The bytes are a list item: a message without
// envelope, or a CBOR item without tag.
type binaryKey struct {
	version      *catalog.Version
	media        string
	omitTypeMeta bool
	masked       bool
}

// binary returns an entry in a binary form, without the document's prefix.
func (s *Server) binary(c *verb.Call, f form, e *watchcache.Entry) ([]byte, error) {
	raw, err := s.verbs.JSON(c, e)
	if err != nil {
		return nil, err
	}
	if f.As != "" {
		if raw, err = codec.PartialMetadata(raw, f.Group+"/"+f.Version); err != nil {
			return nil, err
		}
		return f.item(raw, c)
	}
	key := binaryKey{c.Version, f.Type, false, c.Secrecy.Masked}
	return e.Encoded(key, func() ([]byte, error) { return f.item(raw, c, e.Documents()...) })
}

// item encodes a JSON document as a list item in the form's binary encoding. texts are as in answer.documents.
func (f form) item(doc []byte, c *verb.Call, texts ...string) ([]byte, error) {
	if f.Type == codec.Protobuf {
		return codec.Message(doc, f.message(c), texts...)
	}
	out, err := codec.ToCBOR(doc)
	return codec.CBORItem(out), err
}

// binaryItem is binary for a list item: items of built-in kinds have no apiVersion and kind. Protobuf never has them.
func (s *Server) binaryItem(c *verb.Call, f form, e *watchcache.Entry) ([]byte, error) {
	if f.As != "" || f.Type == codec.Protobuf || c.Version.New == nil {
		return s.binary(c, f, e)
	}
	raw, err := s.verbs.JSON(c, e)
	if err != nil {
		return nil, err
	}
	return e.Encoded(binaryKey{c.Version, f.Type, true, c.Secrecy.Masked}, func() ([]byte, error) {
		return f.item(codec.AppendUntyped(nil, raw), c)
	})
}

// writeEntry responds with one object in a binary form.
func (s *Server) writeEntry(w http.ResponseWriter, r *http.Request, c *verb.Call, e *watchcache.Entry, f form) error {
	r, span := startEncoding(r, f)
	defer span.End()
	item, err := s.binary(c, f, e)
	if err != nil {
		return err
	}
	if c.Audit != nil && c.Audit.Answers() {
		raw, err := s.verbs.JSON(c, e)
		if err != nil {
			return err
		}
		c.Audit.ResponseObject(raw)
	}
	var doc []byte
	if f.Type == codec.Protobuf {
		doc = codec.Enclose(c.APIVersion(), c.Resource.Kind, item)
	} else {
		doc = append(codec.CBORTag(len(item)), item...)
	}
	codec.WriteBinary(w, r, http.StatusOK, doc, f.Media)
	return nil
}

// writeBinaryList streams a page in a binary form.
func (s *Server) writeBinaryList(w http.ResponseWriter, r *http.Request, c *verb.Call, p *verb.Page, f form) error {
	items := make([][]byte, len(p.Entries))
	for i, e := range p.Entries {
		item, err := s.binaryItem(c, f, e)
		if err != nil {
			return err
		}
		items[i] = item
	}
	l := binaryList{listForm: listFormOf(c, f, p), items: items, metadataLast: f.As != "" && f.Version == "v1beta1"}
	write := l.cbor
	if f.Type == codec.Protobuf {
		write = l.protobuf
	}
	w.Header().Set("Content-Type", f.Type)
	out := codec.Compress(w, r)
	defer out.Close()
	chunks := chunkWriter{out: out, buf: make([]byte, 0, streamChunk+8<<10)}
	if err := write(&chunks, p); err != nil {
		return err
	}
	chunks.flush()
	return nil
}

// binaryList is a list of objects about to be written.
type binaryList struct {
	listForm
	items [][]byte
	// metadataLast is true for the PartialObjectMetadataList of v1beta1, which has the field numbers of items and
	// metadata swapped.
	metadataLast bool
}

// protobuf writes the list as a list message of any kind: field 1 is the metadata, field 2 repeats for each item.
func (l *binaryList) protobuf(out *chunkWriter, p *verb.Page) error {
	listMeta := p.ListMeta()
	meta, err := listMeta.Marshal()
	if err != nil {
		return err
	}
	metaField, itemField := byte(1), byte(2)
	if l.metadataLast {
		metaField, itemField = 2, 1
	}
	head := append(codec.FieldHead(nil, metaField, len(meta)), meta...)
	size := len(head)
	var prefix []byte
	for _, item := range l.items {
		prefix = codec.FieldHead(prefix[:0], itemField, len(item))
		size += len(prefix) + len(item)
	}
	before, after := codec.Envelope(l.apiVersion, l.kind, size)
	out.write(before)
	if !l.metadataLast {
		out.write(head)
	}
	for _, item := range l.items {
		prefix = codec.FieldHead(prefix[:0], itemField, len(item))
		out.write(prefix)
		out.write(item)
	}
	if l.metadataLast {
		out.write(head)
	}
	out.write(after)
	return nil
}

func (l *binaryList) cbor(out *chunkWriter, p *verb.Page) error {
	meta := object.Object{}
	if p.Revision > 0 {
		meta["resourceVersion"] = p.ResourceVersion()
	}
	if p.Continue != "" || l.emptyContinue {
		meta["continue"] = p.Continue
	}
	if p.Continue != "" && p.Remaining != nil && *p.Remaining > 0 {
		meta["remainingItemCount"] = *p.Remaining
	}
	if p.Shard != "" {
		meta["shardInfo"] = object.Object{"selector": p.Shard}
	}
	head := codec.AppendCBORMapHead(codec.CBORTag(0), 4)
	for _, field := range []struct {
		name  string
		value any
	}{{"apiVersion", l.apiVersion}, {"kind", l.kind}, {"metadata", meta}} {
		head = codec.AppendCBOR(codec.AppendCBOR(head, field.name), field.value)
	}
	head = codec.AppendCBOR(head, "items")
	if l.nullItems {
		out.write(codec.AppendCBOR(head, nil))
		return nil
	}
	out.write(codec.AppendCBORArrayHead(head, len(l.items)))
	for _, item := range l.items {
		out.write(item)
	}
	return nil
}

// chunkWriter gathers small pieces. If the client disconnects during a write, the next write returns the error.
type chunkWriter struct {
	out  http.ResponseWriter
	buf  []byte
	gone bool
}

func (c *chunkWriter) write(p []byte) {
	if len(c.buf)+len(p) > cap(c.buf) {
		c.flush()
	}
	if len(p) >= streamChunk {
		c.send(p)
		return
	}
	c.buf = append(c.buf, p...)
}

func (c *chunkWriter) flush() {
	c.send(c.buf)
	c.buf = c.buf[:0]
}

func (c *chunkWriter) send(p []byte) {
	if c.gone || len(p) == 0 {
		return
	}
	_, err := c.out.Write(p)
	c.gone = err != nil
}

// frame encodes the frame of a watch event with the JSON document doc. texts are as in answer.documents.
func (f form) frame(kind watch.EventType, doc []byte, c *verb.Call, texts ...string) ([]byte, error) {
	var err error
	switch f.Type {
	case codec.Protobuf:
		doc, err = codec.ToProtobuf(doc, f.message(c), texts...)
	case codec.CBOR:
		doc, err = codec.ToCBOR(doc)
	}
	if err != nil {
		return nil, err
	}
	return codec.WatchFrame(f.Media, string(kind), doc), nil
}

package rest

import (
	"net/http"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	media, err := negotiate(c, r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	options, err := listOptions(query)
	if err != nil {
		return err
	}
	if skipsUnreadable(query) {
		c = c.SkippingUnreadable()
	}
	page, err := s.verbs.List(r.Context(), c, options)
	if err != nil {
		return err
	}
	return s.writeList(w, r, page.Call, page, media)
}

// writeList streams a page: a header, each object's bytes, a trailer.
func (s *Server) writeList(w http.ResponseWriter, r *http.Request, c *verb.Call, p *verb.Page, media form) error {
	if err := holdPage(r.Context(), c, media, p); err != nil {
		return err
	}
	r, span := startEncoding(r, media)
	defer span.End()
	if media.As == "Table" {
		return s.writeTable(w, r, c, p, media)
	}
	if media.As == "PartialObjectMetadata" {
		return notAsRequestedOf(c, media, "a list", "List")
	}
	out := s.listWriter(c, media, p)
	if c.Audit != nil && c.Audit.Answers() {
		doc, err := out.appendTo(nil, p)
		if err != nil {
			return err
		}
		c.Audit.ResponseObject(doc)
	}
	if media.Binary() {
		return s.writeBinaryList(w, r, c, p, media)
	}
	if media.Type != codec.JSON || media.Pretty {
		body, err := out.appendTo(nil, p)
		if err != nil {
			return err
		}
		codec.WriteObject(w, r, http.StatusOK, body, media.plain())
		return nil
	}
	return out.stream(w, r, p)
}

// listWriter returns the writer for a page as JSON.
func (s *Server) listWriter(c *verb.Call, media form, p *verb.Page) listWriter {
	out := listWriter{listForm: listFormOf(c, media, p), omitTypeMeta: c.Version.New != nil && media.As == ""}
	out.item = func(e *watchcache.Entry) ([]byte, error) { return s.verbs.JSON(c, e) }
	if media.As != "" {
		out.item = func(e *watchcache.Entry) ([]byte, error) {
			raw, err := s.verbs.JSON(c, e)
			if err != nil {
				return nil, err
			}
			return codec.PartialMetadata(raw, out.apiVersion)
		}
	}
	return out
}

// listForm holds the parts of a list other than its items, in JSON and CBOR.
type listForm struct {
	apiVersion, kind string
	// emptyContinue is true if the last page has an empty continue in its metadata: in lists of custom kinds.
	emptyContinue bool
	// nullItems is true if items is null: in empty lists of metadata.
	nullItems bool
}

func listFormOf(c *verb.Call, media form, p *verb.Page) listForm {
	if media.As != "" {
		return listForm{
			apiVersion: media.Group + "/" + media.Version, kind: "PartialObjectMetadataList",
			nullItems: len(p.Entries) == 0,
		}
	}
	return listForm{
		apiVersion: c.APIVersion(), kind: c.Resource.ListKind,
		emptyContinue: c.Version.New == nil && !c.Resource.Virtual,
	}
}

// listWriter writes a list of objects as JSON, fields in the order of kube's encoder.
type listWriter struct {
	listForm
	// omitTypeMeta is true if items have no apiVersion and kind: in lists of built-in kinds.
	omitTypeMeta bool
	item         func(*watchcache.Entry) ([]byte, error)
}

func (l *listWriter) header(dst []byte) []byte {
	dst = append(dst, `{"apiVersion":`...)
	dst = strconv.AppendQuote(dst, l.apiVersion)
	if l.nullItems {
		return append(dst, `,"items":null`...)
	}
	return append(dst, `,"items":[`...)
}

func (l *listWriter) trailer(dst []byte, p *verb.Page) []byte {
	if !l.nullItems {
		dst = append(dst, ']')
	}
	dst = append(dst, `,"kind":`...)
	dst = strconv.AppendQuote(dst, l.kind)
	dst = append(dst, `,"metadata":{`...)
	if p.Continue != "" || l.emptyContinue {
		dst = append(dst, `"continue":`...)
		dst = strconv.AppendQuote(dst, p.Continue)
		dst = append(dst, ',')
	}
	if p.Continue != "" && p.Remaining != nil && *p.Remaining > 0 {
		dst = append(dst, `"remainingItemCount":`...)
		dst = strconv.AppendInt(dst, *p.Remaining, 10)
		dst = append(dst, ',')
	}
	if p.Revision > 0 {
		dst = append(dst, `"resourceVersion":"`...)
		dst = strconv.AppendInt(dst, p.Revision, 10)
		dst = append(dst, '"')
	}
	if p.Shard != "" { // its characters need no escapes in JSON
		dst = append(dst, `,"shardInfo":{"selector":"`...)
		dst = append(append(dst, p.Shard...), `"}`...)
	}
	return append(dst, `}}`...)
}

func (l *listWriter) appendTo(dst []byte, p *verb.Page) ([]byte, error) {
	dst = l.header(dst)
	for i, e := range p.Entries {
		raw, err := l.item(e)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if l.omitTypeMeta {
			dst = codec.AppendUntyped(dst, raw)
			continue
		}
		dst = append(dst, raw...)
	}
	return l.trailer(dst, p), nil
}

// streamChunk is the size of the pieces in which a list is written: large enough for full TLS records and HTTP/2
// frames, small enough to stay in cache.
const streamChunk = 64 << 10

// stream writes the list piece by piece. It converts all objects before it sends the first byte, so that after a failed
// conversion the client gets an error and not half a list.
func (l *listWriter) stream(w http.ResponseWriter, r *http.Request, p *verb.Page) error {
	items := make([][]byte, len(p.Entries))
	for i, e := range p.Entries {
		raw, err := l.item(e)
		if err != nil {
			return err
		}
		items[i] = raw
	}
	w.Header().Set("Content-Type", codec.JSON)
	out := codec.Compress(w, r)
	defer out.Close()
	chunk := chunks.Get()
	buf := l.header((*chunk)[:0])
	// put is false once the client has gone.
	put := func(part []byte) bool {
		if len(part) < streamChunk {
			if buf = append(buf, part...); len(buf) < streamChunk {
				return true
			}
			part = nil
		}
		_, err := out.Write(buf)
		buf = buf[:0]
		if err == nil && part != nil {
			_, err = out.Write(part)
		}
		return err == nil
	}
	for i, raw := range items {
		if i > 0 {
			buf = append(buf, ',')
		}
		if !l.omitTypeMeta {
			if !put(raw) {
				return nil
			}
			continue
		}
		buf = append(buf, '{')
		for _, part := range codec.WithoutTypeMeta(raw) {
			if !put(part) {
				return nil
			}
		}
	}
	if _, err := out.Write(append(l.trailer(buf, p), '\n')); err == nil {
		chunks.Put(chunk)
	}
	return nil
}

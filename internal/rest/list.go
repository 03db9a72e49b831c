package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, c *Call) error {
	media, err := c.negotiate(r)
	if err != nil {
		return err
	}
	options, err := listOptions(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := s.list(r.Context(), c, options)
	if err != nil {
		return err
	}
	return s.writeList(w, r, c, page, media)
}

// page is what one list request answers.
type page struct {
	revision  int64 // 0 for a list of objects that are not stored
	entries   []*watchcache.Entry
	next      string // continue token, "" at the end
	remaining *int64 // how many follow, nil if unknown
}

func (p *page) meta() metav1.ListMeta {
	return metav1.ListMeta{ResourceVersion: p.version(), Continue: p.next, RemainingItemCount: p.remaining}
}

// version is the list's resourceVersion, "" if it has none.
func (p *page) version() string {
	if p.revision == 0 {
		return ""
	}
	return strconv.FormatInt(p.revision, 10)
}

// list finds the entries of one page. It holds pointers into an immutable snapshot: nothing is locked or copied.
func (s *Server) list(ctx context.Context, c *Call, o *metainternal.ListOptions) (*page, error) {
	sel, err := s.selector(c, o.LabelSelector, o.FieldSelector)
	if err != nil {
		return nil, err
	}
	if c.Resource.Virtual {
		return s.listUnstored(ctx, c, sel)
	}
	start, err := s.start(ctx, c, o, sel)
	if err != nil {
		return nil, err
	}
	p := &page{revision: start.snapshot.Revision}
	if s.Convert.NeedsWebhook(c.Resource) {
		return p, s.listConverted(ctx, c, o, sel, start, p)
	}
	if sel.name != "" && o.Continue == "" && (sel.namespace != "" || !c.Resource.Namespaced) {
		if e := start.snapshot.Get(sel.namespace, sel.name); sel.matches(e) {
			p.entries = append(p.entries, e)
		}
		return p, nil
	}
	if sel.all() && o.Limit == 0 && c.Namespace == "" {
		p.entries = make([]*watchcache.Entry, 0, start.snapshot.Len())
	}
	more := false
	start.scan(sel, func(e *watchcache.Entry) bool {
		if !sel.matches(e) {
			return true
		}
		if o.Limit > 0 && int64(len(p.entries)) == o.Limit {
			more = true
			return false
		}
		p.entries = append(p.entries, e)
		return true
	})
	if more {
		s.toBeContinued(c, p, start, sel)
	}
	return p, nil
}

// listStart is where a list begins.
type listStart struct {
	snapshot *watchcache.Snapshot
	after    string // the key before the first one
}

// scan calls f for the entries that sel may keep, in order, until f returns false.
func (l listStart) scan(sel *selector, f func(*watchcache.Entry) bool) {
	if ix, value, ok := sel.index(); ok && l.snapshot.Find(ix.Name, value, sel.namespace, l.after, f) {
		return
	}
	l.snapshot.Scan(sel.namespace, l.after, f)
}

// start chooses the snapshot by continue, resourceVersion and resourceVersionMatch, as the table "The
// resourceVersionMatch parameter" of the Kubernetes API concepts has it.
func (s *Server) start(ctx context.Context, c *Call, o *metainternal.ListOptions, sel *selector) (listStart, error) {
	collection := s.View.Collection(c.Resource.Prefix)
	if o.Continue != "" {
		return s.startAtToken(ctx, c, collection, o)
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && o.Limit > 0 && o.ResourceVersion != "" && o.ResourceVersion != "0"
	if _, err := s.catchUp(ctx, o.ResourceVersion); err != nil {
		return listStart{}, badListRevision(err)
	}
	if exact {
		revision, err := parseRevision(o.ResourceVersion)
		if err != nil {
			return listStart{}, err
		}
		snapshot, err := collection.SnapshotAt(ctx, revision)
		if errors.Is(err, watchcache.ErrExpired) {
			return listStart{}, tooOldList()
		}
		return listStart{snapshot: snapshot}, err
	}
	return listStart{snapshot: sel.snapshot(collection)}, nil
}

func (s *Server) startAtToken(
	ctx context.Context, c *Call, collection *watchcache.Collection, o *metainternal.ListOptions,
) (listStart, error) {
	token, err := parseContinue(o.Continue)
	if err != nil {
		return listStart{}, err
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return listStart{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	after := token.after()
	if c.Namespace != "" {
		after = c.Namespace + "/" + after
	}
	if token.Revision < 0 {
		_, err := s.View.Fresh(ctx)
		return listStart{snapshot: collection.Snapshot(), after: after}, err
	}
	if _, err := s.reach(ctx, token.Revision); err != nil {
		return listStart{}, err
	}
	snapshot, err := collection.SnapshotAt(ctx, token.Revision)
	if errors.Is(err, watchcache.ErrExpired) {
		return listStart{}, tooOldContinue(continueToken{Revision: -1, Start: token.Start}.encode())
	}
	return listStart{snapshot: snapshot, after: after}, err
}

// toBeContinued gives a page its continue token and says how many objects follow, which only lists without selectors
// do.
func (s *Server) toBeContinued(c *Call, p *page, start listStart, sel *selector) {
	last := p.entries[len(p.entries)-1]
	key := last.Key()
	if sel.all() {
		left := int64(start.snapshot.Count(c.Namespace, key))
		p.remaining = &left
	}
	if c.Namespace != "" {
		key = last.Name // tokens of one namespace do not name it
	}
	s.View.Collection(c.Resource.Prefix).Pin(start.snapshot)
	p.next = continueToken{Revision: p.revision, Start: key + "\x00"}.encode()
}

// writeList streams a page: a header, each object's bytes, a trailer.
func (s *Server) writeList(w http.ResponseWriter, r *http.Request, c *Call, p *page, media form) error {
	if media.As == "Table" {
		return s.writeTable(w, r, c, p, media)
	}
	if media.As == "PartialObjectMetadata" {
		return c.notAsAsked(media, "a list", "List")
	}
	if media.Binary() {
		return s.writeBinaryList(w, r, c, p, media)
	}
	out := listWriter{listForm: c.listForm(media, p), omitTypeMeta: c.Version.New != nil && media.As == ""}
	out.item = func(e *watchcache.Entry) ([]byte, error) { return s.served(c, e) }
	if media.As != "" {
		out.item = func(e *watchcache.Entry) ([]byte, error) {
			raw, err := s.served(c, e)
			if err != nil {
				return nil, err
			}
			return codec.PartialMetadata(raw, out.apiVersion)
		}
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

// listForm is what a list says beside its items, in JSON and CBOR.
type listForm struct {
	apiVersion, kind string
	// emptyContinue is true if the metadata has a continue at the end too, an empty one: in lists of custom kinds.
	emptyContinue bool
	// nullItems is true if the items are null: in empty lists of metadata.
	nullItems bool
}

func (c *Call) listForm(media form, p *page) listForm {
	if media.As != "" {
		return listForm{
			apiVersion: media.Group + "/" + media.Version, kind: "PartialObjectMetadataList",
			nullItems: len(p.entries) == 0,
		}
	}
	return listForm{apiVersion: c.apiVersion(), kind: c.Resource.ListKind, emptyContinue: c.Version.New == nil}
}

// listWriter writes a list of objects as JSON, fields in the order of kube's encoder.
type listWriter struct {
	listForm
	// omitTypeMeta is true if items do not say their apiVersion and kind: in lists of built-in kinds.
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

func (l *listWriter) trailer(dst []byte, p *page) []byte {
	if !l.nullItems {
		dst = append(dst, ']')
	}
	dst = append(dst, `,"kind":`...)
	dst = strconv.AppendQuote(dst, l.kind)
	dst = append(dst, `,"metadata":{`...)
	if p.next != "" || l.emptyContinue {
		dst = append(dst, `"continue":`...)
		dst = strconv.AppendQuote(dst, p.next)
		dst = append(dst, ',')
	}
	if p.next != "" && p.remaining != nil && *p.remaining > 0 {
		dst = append(dst, `"remainingItemCount":`...)
		dst = strconv.AppendInt(dst, *p.remaining, 10)
		dst = append(dst, ',')
	}
	if p.revision > 0 {
		dst = append(dst, `"resourceVersion":"`...)
		dst = strconv.AppendInt(dst, p.revision, 10)
		dst = append(dst, '"')
	}
	return append(dst, `}}`...)
}

func (l *listWriter) appendTo(dst []byte, p *page) ([]byte, error) {
	dst = l.header(dst)
	for i, e := range p.entries {
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

// streamChunk is how much of a list is gathered before it goes to the connection: large enough for full TLS records and
// HTTP/2 frames, small enough to stay in cache.
const streamChunk = 64 << 10

// stream writes the list piece by piece. An object that cannot be brought into the asked version is found before the
// first byte is sent, so that the client gets an error and not half a list.
func (l *listWriter) stream(w http.ResponseWriter, r *http.Request, p *page) error {
	items := make([][]byte, len(p.entries))
	for i, e := range p.entries {
		raw, err := l.item(e)
		if err != nil {
			return err
		}
		items[i] = raw
	}
	w.Header().Set("Content-Type", codec.JSON)
	out := codec.Compress(w, r)
	defer out.Close()
	chunk := chunks.Get().(*[]byte)
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

package rest

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/corrupt"
)

// stream writes one watch. follow.go has its events.
type stream struct {
	s          *Server
	watch      *verb.Watch
	form       form
	out        sink
	figures    *watchFigures
	began      time.Time
	bookmarks  bool
	head, tail []byte                  // memory of send
	rows       int                     // rows sent so far, in a watch of tables
	keys       map[watch.EventType]any // frame keys by event type: made once, because making one allocates
	masked     bool                    // of keys
	marked     int64                   // revision of the last bookmark
	due        bool                    // a bookmark is due

	unshard  func()                  // of the metrics
	forget   func()                  // ends whileServed
	unserved atomic.Bool             // the kind is no longer served
	carrier  atomic.Pointer[carried] // nil while the handler serves the watch
}

// call returns the call of the watch, with the fields masked that its user may not read by now.
func (st *stream) call() *verb.Call { return st.watch.Call() }

// sink is where the frames of a watch go.
type sink interface {
	// put adds a frame, which must not change. It returns false if the client has disconnected.
	put(frame []byte) bool
	// putParts adds a frame in three parts; body must not change.
	putParts(head, body, tail []byte) bool
	// push sends the gathered frames. It returns false if the client has disconnected.
	push() bool
	// full reports whether the client must read before further frames. A sink that waits for its client is never full.
	full() bool
}

// initial sends the initial state as ADDED events, if requested. If the client requested sendInitialEvents, it then
// sends the bookmark that ends them. It returns false if the client has disconnected.
func (st *stream) initial(ctx context.Context, o *metainternal.ListOptions) bool {
	if !st.watch.HasInitial() {
		return true
	}
	add := func(e *watchcache.Entry) bool { return st.send(watch.Added, e) }
	ok, err := st.watch.Initial(ctx, add, st.out.push)
	if err != nil {
		st.fail(err)
		return false
	}
	if ok && o.SendInitialEvents != nil && *o.SendInitialEvents && o.AllowWatchBookmarks {
		ok = st.bookmark(st.watch.From(), true)
		st.s.figures.observeList(st.call(), st.s.verbs.Now().Sub(st.began))
	}
	return ok
}

// event sends one change as the watch shows it.
func (st *stream) event(ev *verb.Event) bool {
	kind, ok := st.watch.Show(ev)
	return !ok || st.shared(ev, kind)
}

// frameKey identifies a cached frame of an event; all watchers with the same version and form share it.
type frameKey struct {
	version *catalog.Version
	form    form
	kind    watch.EventType
	masked  bool
	// For tables: whether the frame has column definitions, and the second of its creation, because cells show ages.
	headers bool
	second  int64
}

// shared sends an event with bytes encoded once for all watchers.
func (st *stream) shared(ev *verb.Event, kind watch.EventType) bool {
	key := st.frameKey(kind)
	raw := ev.Cached(key)
	if raw == nil {
		var err error
		if raw, err = ev.Encoded(key, func() ([]byte, error) { return st.encodeEvent(ev, kind) }); err != nil {
			st.fail(err)
			return false
		}
	}
	return st.put(raw)
}

// put sends a frame.
func (st *stream) put(frame []byte) bool {
	st.rows++
	st.figures.sent(len(frame))
	return st.out.put(frame)
}

func (st *stream) frameKey(kind watch.EventType) any {
	c := st.call()
	if st.form.As == "Table" {
		return frameKey{
			version: c.Version, form: st.form, kind: kind, masked: c.Secrecy.Masked, headers: st.rows == 0,
			second: st.s.verbs.Now().Unix(),
		}
	}
	if st.masked != c.Secrecy.Masked {
		st.masked, st.keys = c.Secrecy.Masked, nil
	}
	key := st.keys[kind]
	if key == nil {
		key = frameKey{version: c.Version, form: st.form, kind: kind, masked: c.Secrecy.Masked}
		if st.keys == nil {
			st.keys = map[watch.EventType]any{}
		}
		st.keys[kind] = key
	}
	return key
}

func (st *stream) encodeEvent(ev *verb.Event, kind watch.EventType) ([]byte, error) {
	if kind == verb.Hidden {
		return st.wrap(watch.Deleted, st.identity(ev))
	}
	if kind == verb.Left { // with the revision of the change that removed it from the watch
		return st.encode(watch.Deleted, ev.Prev.At(ev.Revision))
	}
	if kind == watch.Deleted && ev.Entry.Unreadable() != nil {
		return nil, corrupt.Deleted(ev.Entry)
	}
	return st.encode(kind, ev.Entry)
}

// identity returns the fields that let a client forget an object that its user may no longer read.
func (st *stream) identity(ev *verb.Event) []byte {
	meta := object.Object{
		"name": ev.Prev.Name, "uid": ev.Prev.UID, "resourceVersion": strconv.FormatInt(ev.Revision, 10),
	}
	if ev.Prev.Namespace != "" {
		meta["namespace"] = ev.Prev.Namespace
	}
	return codec.AppendJSON(nil,
		object.Object{"kind": st.call().Resource.Kind, "apiVersion": st.call().APIVersion(), "metadata": meta})
}

// send sends an object without an event, from the initial state. All watches with the same version and form share the
// bytes cached in its entry, so a client that does not read holds no copy.
func (st *stream) send(kind watch.EventType, e *watchcache.Entry) bool {
	if st.form.As != "" {
		raw, err := st.encode(kind, e)
		if err != nil {
			st.fail(err)
			return false
		}
		return st.put(raw)
	}
	before, body, after, err := st.document(e)
	if err != nil {
		st.fail(err)
		return false
	}
	size := len(before) + len(body) + len(after)
	st.head = append(codec.AppendWatchHead(st.head[:0], st.form.Media, string(kind), size), before...)
	st.tail = append(append(st.tail[:0], after...), codec.WatchTail(st.form.Media)...)
	st.rows++
	st.figures.sent(len(st.head) + len(body) + len(st.tail))
	return st.out.putParts(st.head, body, st.tail)
}

// document returns an entry in the stream's form, without transformation: the bytes cached in the entry, and the prefix
// and suffix that turn them into a protobuf or CBOR document.
func (st *stream) document(e *watchcache.Entry) (before, body, after []byte, err error) {
	switch st.form.Type {
	case codec.Protobuf:
		if body, err = st.s.binary(st.call(), st.form, e); err == nil {
			before, after = codec.Envelope(st.call().APIVersion(), st.call().Resource.Kind, len(body))
		}
	case codec.CBOR:
		body, err = st.s.binary(st.call(), st.form, e)
		before = codec.CBORTag(0)
	default:
		body, err = st.s.verbs.JSON(st.call(), e)
	}
	return before, body, after, err
}

// encode encodes the frame of an entry.
func (st *stream) encode(kind watch.EventType, e *watchcache.Entry) ([]byte, error) {
	raw, err := st.s.verbs.JSON(st.call(), e)
	if err != nil {
		return nil, err
	}
	return st.wrap(kind, raw, e.Documents()...)
}

// wrap puts an object of the call's version into a frame, in the client's form. texts are as in answer.documents.
func (st *stream) wrap(kind watch.EventType, raw []byte, texts ...string) ([]byte, error) {
	body, err := st.transformEvent(raw)
	if err != nil {
		return nil, err
	}
	return st.form.frame(kind, body, st.call(), texts...)
}

// bookmark sends a bookmark: the client has received all changes up to revision. end marks the end of the initial
// events.
func (st *stream) bookmark(revision int64, end bool) bool {
	meta := object.Object{"resourceVersion": strconv.FormatInt(revision, 10)}
	if end {
		meta["annotations"] = object.Object{metav1.InitialEventsAnnotationKey: "true"}
	}
	raw := codec.AppendJSON(nil,
		object.Object{"kind": st.call().Resource.Kind, "apiVersion": st.call().APIVersion(), "metadata": meta})
	frame, err := st.wrap(watch.Bookmark, raw)
	if err != nil {
		st.fail(err)
		return false
	}
	return st.put(frame)
}

// fail ends a stream with an ERROR event.
func (st *stream) fail(err error) {
	status := codec.StatusOf(err)
	raw, _ := codec.EncodeStatus(status, st.form.Media) // strings and numbers only
	if st.form.Type == codec.CBOR {
		raw, _ = codec.ToCBOR(raw)
	}
	_ = st.out.put(codec.WatchFrame(st.form.Media, string(watch.Error), raw)) && st.out.push()
}

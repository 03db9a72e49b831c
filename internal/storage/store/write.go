package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Options holds conditions and effects of a write beyond its own key; the zero value has none and costs nothing.
type Options struct {
	// TTL is the lifetime of the key unless it is written again; 0 means no limit, and a later write without a TTL
	// removes the limit. The key expires slightly later, by at most a twentieth of TTL or a minute: see leases.
	TTL time.Duration
	// UnlessFenced names fences: the write fails with ErrFenced if one of them is up.
	UnlessFenced []string
	// RaiseFence raises the named fence atomically with the write. It stays up for an hour, longer than any request in
	// progress can last.
	RaiseFence string
	// Sequence orders the write among others.
	Sequence Sequence
	// Behind is a barrier that must not have changed since: otherwise the write fails with ErrHeld.
	Behind Barrier
	// Passes is a hold (Store.Hold) that must still stand; otherwise the write fails with ErrHeld. With the write the
	// hold ends, and the barrier stays closed for writers that have not seen the write.
	Passes Barrier
	// Also lists changes of other keys, made atomically with the write. If the key of one does not have the required
	// revision, the write fails with ErrTaken.
	Also []Change
}

// Sequence orders writes that are valid only if their writer has seen all others of the same name: a definition claims
// names that no other definition may have. The write fails with ErrOvertaken if another one came after revision Seen.
// Within one process a lock is cheaper.
type Sequence struct {
	Name string // "" means none
	Seen int64  // the writer has seen everything up to this revision
}

// Writer writes with options. Its methods correspond to the methods of Store.
type Writer struct {
	store   *Store
	options Options
}

// With returns a writer with options.
//
// Fences reject late writes. To delete a container of objects (a definition, a namespace), the writer raises a fence
// under the container's uid in the write that begins the deletion. A write that adds an object to the container
// requires that the fence is down. So no object appears after the search for contents has begun, on whichever replica
// and however long its request has been in progress. A fence that is down costs a lookup in etcd's index. A condition
// on the definition's own key would read the whole definition with each write, and fail with each change of its status.
func (s *Store) With(o Options) Writer { return Writer{store: s, options: o} }

// Create writes a key that must not exist, and returns its revision. It returns ErrExists if the key exists.
//
// It does not keep value.
func (s *Store) Create(ctx context.Context, key string, value []byte) (rev int64, err error) {
	return s.With(Options{}).Create(ctx, key, value)
}

// Update replaces the value of a key that must still have the mod revision rev. It returns ErrConflict if the key has
// another revision, ErrNotFound if it does not exist.
func (s *Store) Update(ctx context.Context, key string, value []byte, rev int64) (newRev int64, err error) {
	return s.With(Options{}).Update(ctx, key, value, rev)
}

// Delete removes a key that must still have the mod revision rev, and returns the revision of the deletion. It returns
// ErrConflict if the key has another revision, ErrNotFound if it does not exist.
func (s *Store) Delete(ctx context.Context, key string, rev int64) (newRev int64, err error) {
	return s.With(Options{}).Delete(ctx, key, rev)
}

// Create is Store.Create; ErrFenced and ErrOvertaken take precedence over ErrExists.
func (w Writer) Create(ctx context.Context, key string, value []byte) (rev int64, err error) {
	rev, found, err := w.swap(ctx, "create", Change{Key: key, Value: value})
	if err == nil && found {
		err = ErrExists
	}
	return rev, wrap("create", key, err)
}

// Update is Store.Update.
func (w Writer) Update(ctx context.Context, key string, value []byte, rev int64) (newRev int64, err error) {
	return w.change(ctx, "update", Change{Key: key, Revision: rev, Value: value})
}

// Delete is Store.Delete. It ignores TTL.
func (w Writer) Delete(ctx context.Context, key string, rev int64) (newRev int64, err error) {
	return w.change(ctx, "delete", Change{Key: key, Revision: rev, Remove: true})
}

// Change is the effect of a write on one key.
type Change struct {
	Key      string
	Revision int64 // required mod revision of the key; 0: it must not exist
	Value    []byte
	Remove   bool // remove the key instead of writing Value
}

func (w Writer) change(ctx context.Context, verb string, c Change) (int64, error) {
	if c.Revision <= 0 {
		return 0,
			fmt.Errorf("%s %s: revision %d: a change needs the revision that it replaces", verb, c.Key, c.Revision)
	}
	newRev, found, err := w.swap(ctx, verb, c)
	switch {
	case err != nil || newRev > 0:
	case found:
		err = ErrConflict
	default:
		err = ErrNotFound
	}
	return newRev, wrap(verb, c.Key, err)
}

// swap makes the change in one transaction, if the key has the required revision and no fence is up, and returns the
// new revision. Otherwise nothing happens: newRev is 0, and found reports whether the key exists.
func (w Writer) swap(ctx context.Context, verb string, c Change) (newRev int64, found bool, err error) {
	ctx, done := w.store.begin(ctx, verb, c.Key)
	defer func() { done.end(ctx, err) }()
	newRev, found, err = w.try(ctx, c)
	// etcd may have lost remembered leases: they were revoked, or a backup was restored.
	if errors.Is(err, ErrLeaseLost) {
		w.store.leases.forget()
		newRev, found, err = w.try(ctx, c)
	}
	for errors.Is(err, errFormatChanged) {
		if err = w.store.lookAtFormat(ctx); err == nil {
			newRev, found, err = w.try(ctx, c)
		}
	}
	return newRev, found, err
}

func (w Writer) try(ctx context.Context, c Change) (newRev int64, found bool, err error) {
	s := w.store
	if err := s.usable(ctx); err != nil {
		return 0, false, err // nothing was sent, so nothing is uncertain
	}
	effects, err := w.effects(ctx, c)
	if err != nil {
		return 0, false, err
	}
	key := s.prefix + c.Key
	compares := []*etcdserverpb.Compare{modified(key, etcdserverpb.Compare_EQUAL, c.Revision)}
	// looks find the failed condition: the options' conditions, then the key, and the format mark last.
	var looks []*etcdserverpb.RequestOp
	conditions := w.options.conditions()
	for _, also := range conditions {
		compares = append(compares, also.compare())
		looks = append(looks, look(also.key))
	}
	// If the key must not exist and there is no other condition, the cause is known without a read.
	if c.Revision > 0 || len(looks) > 0 || len(w.options.Also) > 0 {
		looks = append(looks, look(key))
	}
	for _, also := range w.options.Also {
		compares = append(compares, modified(s.prefix+also.Key, etcdserverpb.Compare_EQUAL, also.Revision))
	}
	own, marked := len(looks), s.marked()
	if marked > 0 {
		compares = append(compares, modified(s.formatKey(), etcdserverpb.Compare_EQUAL, marked))
		looks = append(looks, look(s.formatKey()))
	}

	resp, err := s.backend.Commit(ctx, &etcdserverpb.TxnRequest{Compare: compares, Success: effects, Failure: looks})
	switch {
	case errors.Is(err, ErrNoSpace):
		return w.happened(ctx, c)
	case err != nil:
		return 0, false, err
	case resp.Succeeded:
		s.wrote(resp.Header.Revision)
		return resp.Header.Revision, false, nil
	}
	if marked > 0 {
		kvs := resp.Responses[own].GetResponseRange().GetKvs()
		if len(kvs) == 0 || kvs[0].ModRevision != marked {
			return 0, false, errFormatChanged
		}
	}
	found, err = w.refusal(c, conditions, resp.Responses[:own])
	return 0, found, err
}

// refusal returns the reason why a transaction failed, from the results of its reads, and whether the key exists. The
// reads are about the conditions, and then the key.
func (w Writer) refusal(c Change, conditions []condition, looks []*etcdserverpb.ResponseOp) (found bool, err error) {
	if len(looks) == 0 {
		return true, nil
	}
	revision := func(i int) int64 {
		if kvs := looks[i].GetResponseRange().GetKvs(); len(kvs) > 0 {
			return kvs[0].ModRevision
		}
		return 0
	}
	for i, of := range conditions {
		if !of.holds(revision(i)) {
			return revision(len(looks)-1) > 0, of.err
		}
	}
	now := revision(len(looks) - 1)
	if now == c.Revision && len(w.options.Also) > 0 {
		return now > 0, ErrTaken // the key has the required revision
	}
	return now > 0, nil
}

// Written returns the revision of the last write that this Store has acknowledged, 0 before the first.
func (s *Store) Written() int64 { return s.written.Load() }

func (s *Store) wrote(rev int64) { Raise(&s.written, rev) }

// Raise sets of to the maximum of its value and rev.
func Raise(of *atomic.Int64, rev int64) {
	for {
		last := of.Load()
		if last >= rev || of.CompareAndSwap(last, rev) {
			return
		}
	}
}

// happened determines whether a write that returned ErrNoSpace took effect: etcd applies the write that brings the
// database to its quota, and still reports that there is no room. It reads like all other reads. With the embedded etcd
// that means the key space, which contains the write if it took effect. raft's read index has hung on a busy machine
// while the alarm was being raised.
func (w Writer) happened(ctx context.Context, c Change) (newRev int64, found bool, err error) {
	there, err := w.store.backend.Range(ctx, Span{Start: []byte(w.store.prefix + c.Key)})
	kvs := there.Keys
	switch {
	case err != nil:
		return 0, false, fmt.Errorf("%w: %w", ErrUncertain, err)
	case len(kvs) == 0 && c.Revision == 0, len(kvs) > 0 && kvs[0].ModRevision == c.Revision:
		return 0, false, ErrNoSpace // unchanged
	case len(kvs) > 0 && !c.Remove && bytes.Equal(kvs[0].Value, c.Value):
		w.store.wrote(kvs[0].ModRevision)
		return kvs[0].ModRevision, false, nil
	}
	return 0, false, fmt.Errorf("%w: %w", ErrUncertain, ErrNoSpace) // another client has written since
}

// effects returns the operations of the transaction: the change, the fence, the turn, the barrier, the changes of other
// keys.
func (w Writer) effects(ctx context.Context, c Change) ([]*etcdserverpb.RequestOp, error) {
	key := w.store.prefix + c.Key
	ops := make([]*etcdserverpb.RequestOp, 1, 4+len(w.options.Also))
	switch {
	case c.Remove:
		ops[0] = remove(key)
	case w.options.TTL > 0:
		id, err := w.store.lease(ctx, w.options.TTL)
		if err != nil {
			return nil, err
		}
		ops[0] = put(key, c.Value, id)
	default:
		ops[0] = put(key, c.Value, 0)
	}
	if w.options.RaiseFence != "" {
		id, err := w.store.lease(ctx, fenceTTL)
		if err != nil {
			return nil, err
		}
		ops = append(ops, put(fencePrefix+w.options.RaiseFence, nil, id))
	}
	if turn := w.options.Sequence; turn.Name != "" {
		ops = append(ops, put(turnPrefix+turn.Name, nil, 0))
	}
	if gate := w.options.Passes; gate.Name != "" {
		id, err := w.store.lease(ctx, fenceTTL)
		if err != nil {
			return nil, err
		}
		ops = append(ops, put(barrierPrefix+gate.Name, nil, id))
	}
	for _, also := range w.options.Also {
		if key := w.store.prefix + also.Key; also.Remove {
			ops = append(ops, remove(key))
		} else {
			ops = append(ops, put(key, also.Value, 0))
		}
	}
	return ops, nil
}

// The keys of fences, turns and barriers, outside the prefix of objects, and the lifetime of fences.
const (
	turnPrefix    = "/bowsprit/turns/"
	fencePrefix   = "/bowsprit/fences/"
	barrierPrefix = "/bowsprit/barriers/"
	fenceTTL      = time.Hour
)

// usable reports whether a request may be sent at all.
func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.done:
		return ErrClosed
	case <-s.backend.Failed():
		return s.backend.Failure()
	default:
		return ctx.Err()
	}
}

func wrap(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", verb, key, err)
}

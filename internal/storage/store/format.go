package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/bowsprit/bowsprit/internal/storage/format"
)

// formatInterval is the interval at which a server checks whether a later version has raised the format of a shared
// etcd. A write detects it earlier.
const formatInterval = 10 * time.Second

// errFormatChanged: the format mark has changed since the last check; nothing was written.
var errFormatChanged = errors.New("the mark of the format of the data was changed")

// mark is the state of the format mark.
type mark struct {
	revision atomic.Int64 // of the mark; 0 if there is no valid mark

	looking sync.Mutex // held while etcd is queried; writes do not wait for it
	version string     // of this program
}

// formatKey is the key of the mark.
func (s *Store) formatKey() string { return format.Key(s.prefix) }

// MarkFormat records in etcd that its data has this program's format, unless that is recorded already. version names
// this program. If a later version has recorded a higher format, MarkFormat writes nothing and returns format.ErrNewer.
//
// From then on every write to a shared etcd requires an unchanged mark, and the store breaks (Failed) when a server
// with a newer format has started, because this program may misinterpret the data. Only this server writes to the
// embedded etcd, where the mark serves snapshots.
func (s *Store) MarkFormat(ctx context.Context, version string) error {
	s.mark.looking.Lock()
	defer s.mark.looking.Unlock()
	s.mark.version = version
	return s.markFormatLocked(ctx)
}

func (s *Store) markFormatLocked(ctx context.Context) error {
	for {
		swapped, err := s.tryMark(ctx)
		if err != nil || swapped {
			return err
		}
	}
}

// tryMark writes the mark if necessary, and reports whether it is valid then. If not, another server was faster.
func (s *Store) tryMark(ctx context.Context) (bool, error) {
	there, err := s.backend.Range(ctx, Span{Start: []byte(s.formatKey())})
	if err != nil {
		return false, fmt.Errorf("the format of the data in etcd: %w", err)
	}
	var revision int64
	if len(there.Keys) > 0 {
		written, err := format.Parse(there.Keys[0].Value)
		if err != nil {
			return false, fmt.Errorf("%s in etcd: %w", s.formatKey(), err)
		}
		if err := written.Check("the data in etcd below " + s.prefix); err != nil {
			return false, err
		}
		revision = there.Keys[0].ModRevision
		if written.Format == format.Current {
			s.mark.revision.Store(revision)
			return true, nil
		}
	}
	swap, err := s.backend.Commit(ctx, &etcdserverpb.TxnRequest{
		Compare: []*etcdserverpb.Compare{modified(s.formatKey(), etcdserverpb.Compare_EQUAL, revision)},
		Success: []*etcdserverpb.RequestOp{put(s.formatKey(), format.Of(s.mark.version).Text(), 0)},
	})
	if err != nil {
		return false, fmt.Errorf("record the format of the data in etcd: %w", err)
	}
	if swap.Succeeded {
		s.mark.revision.Store(swap.Header.Revision)
	}
	return swap.Succeeded, nil
}

// marked returns the revision that the mark must have for a write to be made; 0 if it does not matter.
func (s *Store) marked() int64 {
	if !s.shared {
		return 0
	}
	return s.mark.revision.Load()
}

// lookAtFormat checks that the mark is unchanged, and breaks the store if it has a newer format. It recreates a missing
// mark (an older backup was restored into the cluster).
func (s *Store) lookAtFormat(ctx context.Context) error {
	s.mark.looking.Lock()
	defer s.mark.looking.Unlock()
	if s.mark.revision.Load() == 0 {
		return nil
	}
	err := s.markFormatLocked(ctx)
	if s.shared && errors.Is(err, format.ErrNewer) {
		err = fmt.Errorf("store: a server of a later version was started on this etcd: %w", err)
		s.backend.Fail(err)
	}
	return err
}

package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// room tracks the space for more data.
type room struct {
	// full is set when an external etcd has refused a write for lack of space, until it accepts writes again.
	full   atomic.Bool
	wanted chan struct{} // capacity 1: repeated signals add nothing

	// Fields of careEvery's goroutine:
	near  bool  // the database was near its quota at the last check
	tried int64 // the revision at which making room failed; before a deletion another attempt is useless
}

// roomInterval is how often the size of the embedded database is looked at.
const roomInterval = 10 * time.Second

// wasteFloor is the minimum of free space for a defragmentation of the embedded database. It blocks writes (not reads
// of the view) for about a second for each 200 MB in use. It pays if half of the file and at least wasteFloor is free,
// or if free pages would fill the quota.
const wasteFloor = 64 << 20

// refused records that etcd has no room.
func (r *room) refused() {
	r.full.Store(true)
	select {
	case r.wanted <- struct{}{}:
	default:
	}
}

// Size returns the size of etcd's database file in bytes, including pages freed by compaction: the size that counts
// against the quota.
func (s *Store) Size(ctx context.Context) (int64, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if l, ok := s.backend.(*local); ok {
		return l.etcd.Server.Backend().Size(), nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	err := errors.New("no member of etcd is known")
	for _, member := range s.client.Endpoints() {
		var status *clientv3.StatusResponse
		if status, err = s.client.Status(ctx, member); err == nil {
			return status.DbSize, nil
		}
	}
	return 0, readError(err)
}

// CheckRoom reports whether the store accepts new data: ErrNoSpace while its quota is used up. Deletions always work.
func (s *Store) CheckRoom(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if l, ok := s.backend.(*local); ok {
		if outOfSpace(l.etcd.Server.Alarms()) {
			return ErrNoSpace
		}
		return nil
	}
	if !s.room.full.Load() {
		return nil
	}
	// The operators of the cluster make room, without notice to this process.
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	alarms, err := s.client.AlarmList(ctx)
	switch {
	case err != nil:
		return readError(err)
	case outOfSpace(alarms.Alarms):
		return ErrNoSpace
	}
	s.room.full.Store(false)
	return nil
}

func outOfSpace(alarms []*pb.AlarmMember) bool {
	for _, a := range alarms {
		if a.GetAlarm() == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// makeRoom defragments the embedded database if that pays, and re-enables writes when there is room.
func (s *Store) makeRoom(ctx context.Context) error {
	l, ok := s.backend.(*local)
	if !ok {
		return nil
	}
	alarm := outOfSpace(l.etcd.Server.Alarms())
	if alarm {
		return s.recover(ctx, l)
	}
	file, used := l.sizes()
	s.noteUse(used, l.quota)
	if wasteful(file, used, l.quota) {
		return s.defragment(l)
	}
	return nil
}

// noteUse logs once that the database is near its quota, and again if that recurs.
func (s *Store) noteUse(used, quota int64) {
	near := used > quota/5*4
	if near && !s.room.near {
		s.log.Warn(
			"etcd's database comes near its quota; at the quota nothing new can be stored: delete objects, or start the "+
				"server with a larger --quota-backend-bytes", "used", used, "quota", quota)
	}
	s.room.near = near
}

// wasteful reports whether a database of file bytes, with used bytes in use, is worth a defragmentation.
func wasteful(file, used, quota int64) bool {
	if file > quota/5*4 && used < file/5*4 {
		return true
	}
	return file-used >= wasteFloor && used <= file/2
}

// recover makes room in a database that has reached its quota. It discards all history: the view has its own, and other
// clients must list again.
func (s *Store) recover(ctx context.Context, l *local) error {
	rev := l.etcd.Server.KV().Rev()
	if rev == s.room.tried {
		return nil
	}
	s.room.tried = rev
	if _, err := s.client.Compact(ctx, rev, clientv3.WithCompactPhysical()); err != nil &&
		!errors.Is(readError(err), ErrCompacted) {
		return readError(err)
	}
	l.etcd.Server.Backend().ForceCommit()
	file, used := l.sizes()
	if used > l.quota/20*19 {
		s.log.Warn(
			"etcd's database has reached its quota; until objects are deleted, or the server is started with a larger --quota-backend-bytes, nothing new can be stored",
			"used", used, "quota", l.quota)
		return nil
	}
	if file > l.quota/20*19 {
		if err := s.defragment(l); err != nil {
			return err
		}
	}
	if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return readError(err)
	}
	s.room.tried = 0
	s.log.Info("there is room in etcd's database again", "used", used, "quota", l.quota)
	return nil
}

// defragment writes the embedded database anew without its free pages.
func (s *Store) defragment(l *local) error {
	before, used := l.sizes()
	if free, ok := diskFree(l.dir); ok && free < used+used/10+wasteFloor {
		return fmt.Errorf("etcd's database in %s has %d free bytes in %d, but the disk has no room to write it anew",
			l.dir, before-used, before)
	}
	began := time.Now()
	if err := l.etcd.Server.Backend().Defrag(); err != nil {
		return fmt.Errorf("write etcd's database anew: %w", err)
	}
	after, _ := l.sizes()
	s.log.Info("etcd's database was written anew", "before", before, "after", after, "took", time.Since(began))
	return nil
}

// sizes returns the length of the database file and the size of the used part, in bytes.
func (l *local) sizes() (file, used int64) {
	b := l.etcd.Server.Backend()
	return b.Size(), b.SizeInUse()
}

package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// room tracks the space for more data.
type room struct {
	wanted chan struct{} // capacity 1: repeated signals add nothing

	// Fields of care's goroutine:
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
	select {
	case r.wanted <- struct{}{}:
	default:
	}
}

// care cuts the history and keeps the database small and writable, until ctx ends.
func (l *local) care(ctx context.Context) {
	look := time.NewTicker(roomInterval)
	defer look.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			err = l.makeRoom(ctx)
		case <-l.room.wanted:
			err = l.makeRoom(ctx)
		case <-l.past.full:
			// The store's Horizon stays: the following pages of lists are in memory.
			if err = l.Compact(ctx, l.past.cut.Load()); errors.Is(err, store.ErrCompacted) {
				err = nil
			}
		}
		if err != nil && !store.Ended(ctx, err) {
			l.log.Warn("care of etcd's database failed; it is tried again later", "error", err)
		}
	}
}

// Size implements store.Maintainer.
func (l *local) Size(context.Context) (int64, error) { return l.etcd.Server.Backend().Size(), nil }

// CheckRoom implements store.Maintainer.
func (l *local) CheckRoom(context.Context) error {
	if outOfSpace(l.etcd.Server.Alarms()) {
		return store.ErrNoSpace
	}
	return nil
}

func outOfSpace(alarms []*pb.AlarmMember) bool {
	return slices.ContainsFunc(alarms, func(a *pb.AlarmMember) bool { return a.GetAlarm() == pb.AlarmType_NOSPACE })
}

// makeRoom defragments the database if that pays, and re-enables writes when there is room.
func (l *local) makeRoom(ctx context.Context) error {
	if outOfSpace(l.etcd.Server.Alarms()) {
		return l.recover(ctx)
	}
	file, used := l.sizes()
	l.noteUse(used)
	if wasteful(file, used, l.quota) {
		return l.defragment()
	}
	return nil
}

// noteUse logs once that the database is near its quota, and again if that recurs.
func (l *local) noteUse(used int64) {
	near := used > l.quota/5*4
	if near && !l.room.near {
		l.log.Warn(
			"etcd's database comes near its quota; at the quota nothing new can be stored: delete objects, or start the "+
				"server with a larger --quota-backend-bytes", "used", used, "quota", l.quota)
	}
	l.room.near = near
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
func (l *local) recover(ctx context.Context) error {
	rev := l.etcd.Server.KV().Rev()
	if rev == l.room.tried {
		return nil
	}
	l.room.tried = rev
	if _, err := l.client.Compact(ctx, rev, clientv3.WithCompactPhysical()); err != nil &&
		!errors.Is(store.ReadError(err), store.ErrCompacted) {
		return store.ReadError(err)
	}
	l.etcd.Server.Backend().ForceCommit()
	file, used := l.sizes()
	if used > l.quota/20*19 {
		l.log.Warn(
			"etcd's database has reached its quota; until objects are deleted, or the server is started with a larger --quota-backend-bytes, nothing new can be stored",
			"used", used, "quota", l.quota)
		return nil
	}
	if file > l.quota/20*19 {
		if err := l.defragment(); err != nil {
			return err
		}
	}
	if _, err := l.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return store.ReadError(err)
	}
	l.room.tried = 0
	l.log.Info("there is room in etcd's database again", "used", used, "quota", l.quota)
	return nil
}

// defragment writes the embedded database anew without its free pages.
func (l *local) defragment() error {
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
	l.log.Info("etcd's database was written anew", "before", before, "after", after, "took", time.Since(began))
	return nil
}

// sizes returns the length of the database file and the size of the used part, in bytes.
func (l *local) sizes() (file, used int64) {
	b := l.etcd.Server.Backend()
	return b.Size(), b.SizeInUse()
}

package embedded

import (
	"context"
	"fmt"
	"time"
	_ "unsafe" // for linkname

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/bowsprit/bowsprit/internal/storage/store/fault"
)

// raftStatus returns raft's own status; etcd's applied and committed indexes are ahead of it.
//
//go:linkname raftStatus go.etcd.io/etcd/server/v3/etcdserver.(*EtcdServer).raftStatus
func raftStatus(*etcdserver.EtcdServer) raft.Status

// leaderTimeout bounds the time that etcd may spend without applying anything before it leads. Usually it takes
// milliseconds.
const leaderTimeout = time.Minute

var errNoLeader = fmt.Errorf("etcd has done nothing for %s and does not lead", leaderTimeout)

// becomeLeader makes the only member the leader without waiting for an election timeout. It returns when the whole log
// has been applied and reads succeed.
//
// Otherwise the first election would take 0.1 to 1.1 s, or the process would have to tick raft hundreds of times a
// second for its whole life.
func becomeLeader(ctx context.Context, server *etcdserver.EtcdServer, failure *fault.Fault) error {
	id := uint64(server.MemberID())
	look := time.NewTicker(500 * time.Microsecond)
	defer look.Stop()
	var applied uint64
	stuck := time.NewTimer(leaderTimeout)
	defer stuck.Stop()
	for uint64(server.Leader()) != id {
		// Wait until the log has been replayed and raft has the result. A campaign before that reads log entries that
		// are applied but already dropped from memory, which raft treats as damage. Without a leader the commit index
		// does not move.
		status := raftStatus(server)
		if status.Applied > applied {
			applied = status.Applied
			stuck.Reset(leaderTimeout)
		}
		if status.Applied > 0 && status.Applied == status.GetCommit() {
			// A leader sends MsgTimeoutNow to its chosen successor: campaign at once.
			if err := server.Process(ctx,
				&raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &id, To: &id}); err != nil {
				return err
			}
		}
		select {
		case <-look.C:
		case <-stuck.C:
			return errNoLeader
		case <-ctx.Done():
			return ctx.Err()
		case <-failure.Done():
			return failure.Err()
		}
	}
	stuck.Reset(leaderTimeout)
	select {
	case <-stuck.C:
		return errNoLeader
	case <-server.ReadyNotify(): // the member has published itself: a write of this term is committed and applied
		return firstRead(ctx, server.LinearizableReadNotify)
	case <-ctx.Done():
		return ctx.Err()
	case <-failure.Done():
		return failure.Err()
	}
}

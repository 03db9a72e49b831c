package embedded

import (
	"reflect"
	"testing"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/raft/v3"
)

// TestPrivateSymbolOfEtcd checks the private method of etcd's server that the start of the embedded etcd links to. The
// linker compares only its name; the result shows whether the signature still matches raftStatus.
func TestPrivateSymbolOfEtcd(t *testing.T) {
	t.Parallel()
	const advice = "etcd has changed (*EtcdServer).raftStatus, to which store/embedded/leader.go links: " +
		"docs/design/embedded-etcd.md says what to do"
	s, l := open(t, Config{})
	if _, err := s.Create(testContext(t), "k/a", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	server := l.etcd.Server
	status := raftStatus(server)
	if status.ID != uint64(server.MemberID()) || status.Lead != status.ID || status.Applied == 0 ||
		status.Applied > status.GetCommit() || status.GetCommit() < server.AppliedIndex() {
		t.Errorf("%s\nit returned %+v; the server says that it is %s, and has applied %d", advice, status,
			server.MemberID(), server.AppliedIndex())
	}
	if got, want := reflect.TypeOf(raftStatus),
		reflect.TypeFor[func(*etcdserver.EtcdServer) raft.Status](); got != want {
		t.Errorf("%s\nit is declared as %s", advice, got)
	}
}

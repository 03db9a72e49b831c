// Package embedded runs an etcd server with one member inside this process, as a backend of package store.
//
// Config opens it. Beside the backend it takes care of the data directory: it finds damage before etcd does, keeps the
// database small, and checks and restores snapshots. Only programs that start a server with its own data import it: it
// links etcd's server.
//
// Methods are safe for concurrent use.
package embedded

// Config configures the server.
type Config struct {
	// Dir is etcd's data directory; it is created if missing. Only one process at a time may use it.
	Dir string
	// NoSync trades durability for speed: nothing is fsynced. For tests.
	NoSync bool
	// ListenClientURL makes the server reachable for etcdctl, for example "http://127.0.0.1:2379"; port 0 selects a
	// free port. If empty, there is no socket.
	ListenClientURL string
	// Quota is the maximum size of the database in bytes; 0 means 8 GiB. At the quota etcd refuses new data, but not
	// deletions, until there is room again.
	Quota int64
	// MaxRequestBytes is the maximum size of a write; 0 means 1.5 MiB, etcd's default.
	MaxRequestBytes uint
	// History is the number of revisions of history to keep, if that many are younger than the store's CompactInterval.
	// When there are twice as many, the older half is compacted. 0 keeps all; so does ListenClientURL, because other
	// programs may need them.
	History int64
	// FirstRevision is the revision that a new data directory starts after; 0 means etcd's default. It serves data
	// recreated at each start: otherwise clients would see old revisions again with other contents.
	FirstRevision int64
}

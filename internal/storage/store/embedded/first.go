package embedded

import (
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	etcdbackend "go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// beginAt makes a new data directory start after the revision, with all earlier history compacted. A client that has
// seen an earlier revision then lists again, instead of waiting for revisions that come again with other contents.
//
// It writes the same database entries as `etcdutl snapshot restore --bump-revision --mark-compacted`.
func beginAt(dir string, revision int64) error {
	file := filepath.Join(dir, "member", "snap", "db")
	if fileutil.Exist(filepath.Join(dir, "member")) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	b := etcdbackend.NewDefaultBackend(zap.NewNop(), file)
	tx := b.BatchTx()
	tx.LockOutsideApply()
	for _, bucket := range schema.AllBuckets {
		tx.UnsafeCreateBucket(bucket)
	}
	tx.UnsafePut(schema.Key, mvcc.RevToBytes(mvcc.Revision{Main: revision}, mvcc.NewRevBytes()), []byte{})
	mvcc.UnsafeSetScheduledCompact(tx, revision)
	schema.UnsafeSetStorageVersion(tx, &version.V3_6)
	tx.Unlock()
	b.ForceCommit()
	return b.Close()
}

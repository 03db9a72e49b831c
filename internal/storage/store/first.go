package store

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

// beginAt has a data directory that is made for the first time begin after the revision, with all history before it
// compacted: who has seen an earlier revision lists again, and does not wait for what comes anew with another content.
//
// It writes what `etcdutl snapshot restore --bump-revision --mark-compacted` leaves behind in the database.
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

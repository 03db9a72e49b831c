package embedded

import (
	"bytes"
	"errors"
	"strings"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"google.golang.org/protobuf/proto"

	"github.com/bowsprit/bowsprit/internal/storage/format"
)

// readSnapshotFormat returns the highest format that a database notes for any prefix, zero if it notes none.
func readSnapshotFormat(file string) (highest format.Mark, err error) {
	db, err := bbolt.Open(file, 0o400, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return highest, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	marks := map[string]format.Mark{} // the latest by key
	err = db.View(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("key"))
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(revision, value []byte) error { // by revision
			if !bytes.Contains(value, []byte(format.KeyPrefix)) {
				return nil
			}
			var kv mvccpb.KeyValue
			err := proto.Unmarshal(value, &kv)
			if err != nil || !strings.HasPrefix(string(kv.Key), format.KeyPrefix+"/") {
				return err
			}
			delete(marks, string(kv.Key))
			if mvcc.IsTombstone(revision) {
				return nil
			}
			w, err := format.Parse(kv.Value)
			marks[string(kv.Key)] = w
			return err
		})
	})
	for _, w := range marks {
		if w.Format > highest.Format {
			highest = w
		}
	}
	return highest, err
}

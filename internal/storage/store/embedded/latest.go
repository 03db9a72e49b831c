package embedded

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"google.golang.org/protobuf/proto"
)

// ErrInUse is the error about the database of a running server.
var ErrInUse = errors.New("a running server uses the database")

// lockPatience is the time that Find waits for a server that stops.
const lockPatience = time.Second

// Find returns the sorted keys with matching latest values below some prefixes, in etcd's data directory dir. No server
// may run on it (ErrInUse). The last writes before a crash are missing: they are only in etcd's log.
func Find(dir string, below []string, matches func(value []byte) bool) ([]string, error) {
	file := filepath.Join(dir, "member", "snap", "db")
	db, err := bbolt.Open(file, 0o400, &bbolt.Options{ReadOnly: true, Timeout: lockPatience})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%s: %w", file, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer db.Close()
	if err := checkDatabase(dir); err != nil {
		return nil, err
	}
	wanted := func(key string) bool {
		return slices.ContainsFunc(below, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	}
	found := map[string]bool{}
	err = eachRevision(db, wanted, func(key string, value []byte, deleted bool) error {
		if !deleted && matches(value) {
			found[key] = true
		} else {
			delete(found, key)
		}
		return nil
	})
	return slices.Sorted(maps.Keys(found)), err
}

// eachRevision calls f with the wanted keys of a database, in the order of their writes. A value is valid until f
// returns.
func eachRevision(
	db *bbolt.DB, wanted func(key string) bool, f func(key string, value []byte, deleted bool) error,
) error {
	return db.View(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("key"))
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(revision, record []byte) error {
			if key, ok := keyOf(record); ok && !wanted(key) {
				return nil
			}
			var kv mvccpb.KeyValue
			if err := proto.Unmarshal(record, &kv); err != nil || !wanted(string(kv.Key)) {
				return err
			}
			return f(string(kv.Key), kv.Value, mvcc.IsTombstone(revision))
		})
	})
}

// keyOf returns the key of an encoded mvccpb.KeyValue, which is its first field, without decoding the rest. ok is false
// if the key is elsewhere or longer than 127 bytes.
func keyOf(record []byte) (key string, ok bool) {
	const firstField = 1<<3 | 2 // of length-delimited bytes
	if len(record) < 2 || record[0] != firstField || record[1] >= 0x80 || len(record) < 2+int(record[1]) {
		return "", false
	}
	return string(record[2 : 2+int(record[1])]), true
}

package embedded

import (
	"errors"
	"strings"

	"go.etcd.io/bbolt"

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
	wanted := func(key string) bool { return strings.HasPrefix(key, format.KeyPrefix+"/") }
	err = eachRevision(db, wanted, func(key string, value []byte, deleted bool) error {
		delete(marks, key)
		if deleted {
			return nil
		}
		w, err := format.Parse(value)
		marks[key] = w
		return err
	})
	for _, w := range marks {
		if w.Format > highest.Format {
			highest = w
		}
	}
	return highest, err
}

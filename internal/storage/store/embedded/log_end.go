package embedded

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// checkLog compares the end of etcd's log with the applied index in its database. If the log is missing or older than
// the database, etcd waits silently and without limit: the entries that it would apply next are applied already.
//
// Cost: it reads the last segment of the log, at most 16 MB, and one page of the database.
func checkLog(dir string) error {
	applied, err := appliedIndex(filepath.Join(dir, "member", "snap", "db"))
	if err != nil || applied == 0 {
		return err
	}
	folder := filepath.Join(dir, "member", "wal")
	segments, err := filepath.Glob(filepath.Join(folder, "*.wal"))
	if err != nil {
		return err
	}
	if len(segments) == 0 {
		return fmt.Errorf("the database has %d entries of a log, but there is no log in %s", applied, folder)
	}
	slices.Sort(segments)
	end, err := segmentEnd(segments[len(segments)-1])
	if err != nil {
		return err
	}
	if end < applied {
		return fmt.Errorf(
			"the log in %s ends at entry %d, but the database has entry %d: the log is older than the database, "+
				"or its end cannot be read", folder, end, applied)
	}
	return nil
}

// appliedIndex returns the index of the last log entry in the database, 0 if the database is new or missing.
func appliedIndex(file string) (uint64, error) {
	if _, err := os.Stat(file); os.IsNotExist(err) {
		return 0, nil
	}
	db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	defer db.Close()
	var applied uint64
	err = db.View(func(tx *bolt.Tx) error {
		if meta := tx.Bucket([]byte("meta")); meta != nil {
			if value := meta.Get([]byte("consistent_index")); len(value) == 8 {
				applied = binary.BigEndian.Uint64(value)
			}
		}
		return nil
	})
	return applied, err
}

// segmentEnd returns the index of the last readable entry in a segment of the log, or of the entry before the segment.
func segmentEnd(file string) (uint64, error) {
	var number, first uint64
	if _, err := fmt.Sscanf(filepath.Base(file), "%016x-%016x.wal", &number, &first); err != nil {
		return 0, fmt.Errorf("%s is not named as a segment of the log: %w", file, err)
	}
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	end := max(first, 1) - 1
	decoder, record := wal.NewDecoder(fileutil.NewFileReader(f)), &walpb.Record{}
	for decoder.Decode(record) == nil { // a torn end is usual after a crash; later entries were not acknowledged
		switch record.GetType() {
		case wal.CrcType:
			decoder.UpdateCRC(record.GetCrc())
		case wal.EntryType:
			end = wal.MustUnmarshalEntry(record.Data).GetIndex()
		}
	}
	return end, nil
}

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	// The driver registers itself.
	_ "modernc.org/sqlite"

	"github.com/bowsprit/bowsprit/extension"
)

// tables are the ships, and a list of changed ships. Triggers maintain the list, so that it includes changes by other
// programs. The column meta holds the object metadata that the table does not have; other programs leave it empty.
const tables = `
CREATE TABLE IF NOT EXISTS ships (
  namespace TEXT NOT NULL, name TEXT NOT NULL, captain TEXT NOT NULL, masts INTEGER NOT NULL DEFAULT 3,
  meta TEXT NOT NULL DEFAULT '{}', version INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (namespace, name));
CREATE TABLE IF NOT EXISTS changes (
  id INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, name TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS ships_made AFTER INSERT ON ships
  BEGIN INSERT INTO changes (namespace, name) VALUES (NEW.namespace, NEW.name); END;
CREATE TRIGGER IF NOT EXISTS ships_changed AFTER UPDATE OF captain, masts, meta ON ships BEGIN
  UPDATE ships SET version = OLD.version + 1 WHERE namespace = NEW.namespace AND name = NEW.name;
  INSERT INTO changes (namespace, name) VALUES (NEW.namespace, NEW.name); END;
CREATE TRIGGER IF NOT EXISTS ships_gone AFTER DELETE ON ships
  BEGIN INSERT INTO changes (namespace, name) VALUES (OLD.namespace, OLD.name); END;`

// Storage stores ships in a table.
type Storage struct{ db *sql.DB }

var _ extension.Watcher = (*Storage)(nil)

// Open opens a database, and creates missing tables.
func Open(file string) (*Storage, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer at a time
	if _, err := db.Exec(tables); err != nil {
		db.Close()
		return nil, err
	}
	return &Storage{db}, nil
}

// Close implements io.Closer.
func (s *Storage) Close() error { return s.db.Close() }

const columns = "SELECT namespace, name, captain, masts, meta, version FROM ships "

// List implements extension.Storage.
func (s *Storage) List(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		all, err := s.read(ctx, columns)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, obj := range all {
			if !yield(obj, nil) {
				return
			}
		}
	}
}

// Get implements extension.Watcher.
func (s *Storage) Get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	all, err := s.read(ctx, columns+"WHERE namespace = ? AND name = ?", namespace, name)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// read returns the objects of rows.
func (s *Storage) read(ctx context.Context, query string, args ...any) (all []*unstructured.Unstructured, err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var ship Ship
		var meta string
		var namespace, name string
		var version int64
		if err := rows.Scan(&namespace, &name, &ship.Spec.Captain, &ship.Spec.Masts, &meta, &version); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(meta), &ship.ObjectMeta); err != nil {
			return nil, err
		}
		ship.Namespace, ship.Name, ship.ResourceVersion = namespace, name, strconv.FormatInt(version, 10)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&ship)
		if err != nil {
			return nil, err
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	return all, rows.Err()
}

// Write implements extension.Storage. It succeeds only if the row still has the version of old.
func (s *Storage) Write(ctx context.Context, old, now *unstructured.Unstructured) error {
	if now == nil {
		return changed(s.db.ExecContext(ctx, "DELETE FROM ships WHERE namespace = ? AND name = ? AND version = ?",
			old.GetNamespace(), old.GetName(), old.GetResourceVersion()))
	}
	var ship Ship
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(now.Object, &ship); err != nil {
		return err
	}
	namespace, name := ship.Namespace, ship.Name
	ship.Namespace, ship.Name, ship.ResourceVersion = "", "", ""
	meta, err := json.Marshal(ship.ObjectMeta)
	if err != nil {
		return err
	}
	if old == nil {
		err = changed(s.db.ExecContext(ctx, `INSERT INTO ships (namespace, name, captain, masts, meta)
			VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, namespace, name, ship.Spec.Captain, ship.Spec.Masts, meta))
		if err == nil {
			now.SetResourceVersion("1")
		}
		return err
	}
	version, err := strconv.ParseInt(old.GetResourceVersion(), 10, 64)
	if err != nil {
		return extension.ErrConflict
	}
	err = changed(s.db.ExecContext(ctx, `UPDATE ships SET captain = ?, masts = ?, meta = ?
		WHERE namespace = ? AND name = ? AND version = ?`,
		ship.Spec.Captain, ship.Spec.Masts, meta, namespace, name, version))
	if err == nil {
		now.SetResourceVersion(strconv.FormatInt(version+1, 10))
	}
	return err
}

// changed returns a conflict if a write did not find the expected row.
func changed(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return extension.ErrConflict
}

// lookEvery is the interval between reads of the list of changes.
const lookEvery = 50 * time.Millisecond

// Changes implements extension.Watcher.
func (s *Storage) Changes(ctx context.Context) (iter.Seq2[types.NamespacedName, error], error) {
	var seen int64
	if err := s.db.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM changes").Scan(&seen); err != nil {
		return nil, err
	}
	return func(yield func(types.NamespacedName, error) bool) {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			names, last, err := s.since(ctx, seen)
			if err != nil {
				yield(types.NamespacedName{}, err)
				return
			}
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
			seen = last
		}
	}, nil
}

// since returns the ships that changed after a change, and the number of the last change.
func (s *Storage) since(ctx context.Context, seen int64) (names []types.NamespacedName, last int64, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id, namespace, name FROM changes WHERE id > ? ORDER BY id", seen)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for last = seen; rows.Next(); {
		var name types.NamespacedName
		if err := rows.Scan(&last, &name.Namespace, &name.Name); err != nil {
			return nil, 0, err
		}
		names = append(names, name)
	}
	return names, last, rows.Err()
}

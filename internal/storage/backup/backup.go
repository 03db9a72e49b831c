// Package backup saves all data of a server to a file, and restores it.
//
// It is not on the path of requests: the command line calls it. The file has etcd's own snapshot format, the database
// followed by its SHA-256, so etcdctl and etcdutl can read it, and their snapshots can be restored. A file is complete
// and checked, or does not exist. Certificates are not included: they are files below <data-dir>/pki.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/storage/durable"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
)

// Path is where a server streams a snapshot to administrators.
const Path = "/bowsprit/snapshot"

// Source writes a snapshot to w.
type Source func(ctx context.Context, w io.Writer) error

// FromServer takes the snapshot from a running server, with an administrator's credentials.
func FromServer(config *rest.Config) Source {
	return func(ctx context.Context, w io.Writer) error {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+Path, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return refusal(resp)
		}
		if _, err := io.Copy(w, resp.Body); err != nil {
			return fmt.Errorf("the server at %s broke off: %w", config.Host, err)
		}
		return nil
	}
}

func refusal(resp *http.Response) error {
	var status metav1.Status
	if json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&status) == nil && status.Message != "" {
		return errors.New(status.Message)
	}
	return fmt.Errorf("the server answered %s", resp.Status)
}

// FromDir takes the snapshot from the data directory of a stopped server. The error is store.ErrInUse if it is running.
func FromDir(dir string, log *slog.Logger) Source {
	return func(ctx context.Context, w io.Writer) (err error) {
		etcd := EtcdDir(dir)
		if _, err := os.Stat(filepath.Join(etcd, "member")); err != nil {
			return fmt.Errorf("there is no data in %s: %w", etcd, err)
		}
		s, err := store.Open(ctx, store.Config{Etcd: embedded.Config{Dir: etcd}, CompactInterval: -1, Log: log})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		_, err = s.Snapshot(ctx, w)
		return err
	}
}

// EtcdDir is where the embedded etcd of a server with this data directory lives.
func EtcdDir(dataDir string) string { return filepath.Join(dataDir, "etcd") }

// Save writes a checked snapshot to file, and replaces an existing one.
func Save(ctx context.Context, from Source, file string) (info embedded.SnapshotInfo, err error) {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".part-") // mode 0600: it contains secrets
	if err != nil {
		return info, err
	}
	part := f.Name()
	defer os.Remove(part)
	err = from(ctx, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return info, err
	}
	if info, err = embedded.CheckSnapshot(part); err != nil {
		return info, err
	}
	return info, durable.Rename(part, file)
}

// Restore creates a data directory from a snapshot. bump is added to its revision, see embedded.RestoreOptions.
func Restore(file, dataDir string, bump uint64) (embedded.SnapshotInfo, error) {
	return embedded.RestoreSnapshot(file, embedded.RestoreOptions{Dir: EtcdDir(dataDir), BumpRevision: bump})
}

package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/bowsprit/bowsprit/internal/storage/durable"
	"github.com/bowsprit/bowsprit/internal/storage/format"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/fault"
)

// Snapshot implements store.Maintainer.
func (l *local) Snapshot(ctx context.Context, w io.Writer) (written int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := l.client.Snapshot(ctx)
	if err != nil {
		return 0, store.ReadError(err)
	}
	defer r.Close()
	written, err = io.Copy(w, r)
	if err != nil {
		return written, store.ReadError(err)
	}
	return written, nil
}

// SnapshotInfo describes the contents of a snapshot.
type SnapshotInfo struct {
	Revision int64
	Keys     int   // of all prefixes
	Size     int64 // of the database, bytes
	// Format is the highest recorded format (store.Store.MarkFormat), zero if there is none.
	Format format.Mark
}

// ErrNotSnapshot: the file is not a snapshot, or is damaged.
var ErrNotSnapshot = errors.New("it is not a complete snapshot of etcd")

// CheckSnapshot reads a snapshot file from end to end and describes its contents. It returns ErrNotSnapshot if the
// checksum or the structure is wrong.
func CheckSnapshot(file string) (SnapshotInfo, error) {
	if err := checkSum(file); err != nil {
		return SnapshotInfo{}, err
	}
	status, err := snapshot.NewV3(zap.NewNop()).Status(file)
	if err != nil {
		return SnapshotInfo{}, fmt.Errorf("%s: %w: %w", file, ErrNotSnapshot, err)
	}
	format, err := readSnapshotFormat(file)
	if err != nil {
		return SnapshotInfo{}, fmt.Errorf("%s: %w: %w", file, ErrNotSnapshot, err)
	}
	return SnapshotInfo{
		Revision: status.Revision, Keys: status.TotalKey, Size: status.TotalSize, Format: format,
	}, nil
}

// checkSum verifies the checksum at the end of a snapshot.
func checkSum(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size()%512 != sha256.Size { // a database consists of whole pages
		return fmt.Errorf("%s: %w: there is no checksum at its end", file, ErrNotSnapshot)
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, info.Size()-sha256.Size); err != nil {
		return err
	}
	want, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return fmt.Errorf("%s: %w: its checksum is wrong", file, ErrNotSnapshot)
	}
	if err := checkPages(f, info.Size()-sha256.Size); err != nil {
		return fmt.Errorf("%s: %w: %w", file, ErrNotSnapshot, err)
	}
	return nil
}

// RestoreOptions configures the restoration of a snapshot to a data directory.
type RestoreOptions struct {
	// Dir is the data directory of the embedded etcd (Config.Dir). It must be empty or missing.
	Dir string
	// BumpRevision is added to the revision, and all history counts as compacted. Clients that have seen revisions
	// after the snapshot then list again, instead of waiting for revisions that come again with other contents.
	BumpRevision uint64
}

// RestoreSnapshot creates a data directory for the embedded etcd from a snapshot file. After an error nothing is left.
// It returns format.ErrNewer if the data has an unknown format.
func RestoreSnapshot(file string, o RestoreOptions) (info SnapshotInfo, err error) {
	if info, err = CheckSnapshot(file); err != nil {
		return info, err
	}
	if err := info.Format.Check(file); err != nil {
		return info, err
	}
	if fileutil.Exist(o.Dir) && !fileutil.DirEmpty(o.Dir) {
		return info, fmt.Errorf("%s is not empty; move it away, or choose another --data-dir", o.Dir)
	}
	cfg, err := etcdConfig(Config{Dir: o.Dir})
	if err != nil {
		return info, err
	}
	smallSegments()
	// Create the directory beside the target and rename it, so that it is complete or missing.
	if err := os.MkdirAll(filepath.Dir(o.Dir), 0o700); err != nil {
		return info, err
	}
	part, err := os.MkdirTemp(filepath.Dir(o.Dir), filepath.Base(o.Dir)+".restoring-")
	if err != nil {
		return info, err
	}
	defer os.RemoveAll(part)
	peers := make([]string, 0, 1)
	for _, u := range cfg.AdvertisePeerUrls {
		peers = append(peers, u.String())
	}
	failure := fault.New()
	restored := make(chan error, 1) // etcd gives up by ending the goroutine
	go func() {
		defer close(restored)
		restored <- snapshot.NewV3(fault.Logger(slog.New(slog.DiscardHandler), failure)).Restore(snapshot.RestoreConfig{
			SnapshotPath: file, Name: cfg.Name, OutputDataDir: filepath.Join(part, "etcd"),
			PeerURLs: peers, InitialCluster: cfg.InitialCluster, InitialClusterToken: cfg.InitialClusterToken,
			RevisionBump: o.BumpRevision, MarkCompacted: o.BumpRevision > 0,
		})
	}()
	err, finished := <-restored
	if !finished {
		err = failure.Err()
	}
	if err != nil {
		return info, fmt.Errorf("restore %s: %w", file, err)
	}
	if err := os.Remove(o.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return info, err
	}
	info.Revision += int64(o.BumpRevision)
	return info, durable.Rename(filepath.Join(part, "etcd"), o.Dir)
}

package fault

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// TestEtcdLog checks that etcd's warnings go to the server's log, except for intended conditions.
func TestEtcdLog(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	etcd := Logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})), New())
	etcd.Info("started")
	etcd.Warn("failed to lock file", zap.String("path", "0.wal"),
		zap.Error(errors.New("fileutil: file already locked")))
	etcd.Warn("failed to get storage version",
		zap.Error(errors.New("cannot detect storage schema version: missing term information")))
	etcd.Warn("slow fdatasync", zap.String("took", "2s"))
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "slow fdatasync") ||
		!strings.Contains(got, "took=2s") {
		t.Errorf("logged:\n%s", got)
	}
}

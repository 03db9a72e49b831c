package quota_test

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

// cluster is a fresh server with a client.
type cluster struct{ *controltest.Cluster }

func start(t *testing.T) *cluster {
	t.Helper()
	return &cluster{controltest.Start(t)}
}

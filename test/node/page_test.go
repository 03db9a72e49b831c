package node

import (
	"path/filepath"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// session is a shell beside the cluster.
func (c *cluster) session() page.Session {
	return page.Session{Dir: c.home, Env: c.env(), Limit: limit}
}

// runPage runs a page of docs against the cluster, with replacements.
func (c *cluster) runPage(t *testing.T, name string, words map[string]string) {
	t.Helper()
	c.session().Run(t, filepath.Join("..", "..", "docs", name), words)
}

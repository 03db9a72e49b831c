package wire

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/script"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestScripts runs all scripts against one server.
func TestScripts(t *testing.T) {
	t.Parallel()
	script.Run(t, "testdata/*.txt", testserver.Start(t).RESTConfig())
}

package part

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// TestSlowStepsAreNoted checks that a step of the start that takes more than two seconds logs its name, at once and
// then from time to time.
func TestSlowStepsAreNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out logtest.Log
		done := NoteSlow(slog.New(slog.NewTextHandler(&out, nil)), "open the store", "dir", "/data")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := out.String(); got != "" {
			t.Errorf("after a second: %s", got)
		}
		time.Sleep(40 * time.Second)
		done()
		if got := out.String(); strings.Count(got, "\n") != 2 ||
			!strings.Contains(got, `msg="the start takes long" step="open the store" after=2s dir=/data`) {
			t.Errorf("after 41 seconds: %s", got)
		}
	})
}

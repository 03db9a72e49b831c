package bowsprit

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A step of the start that takes more than two seconds says what it is doing, at once and then from time to time.
func TestSlowStepsAreNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		done := noteSlow(slog.New(slog.NewTextHandler(&out, nil)), "open the store", "dir", "/data")
		time.Sleep(time.Second)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("after a second: %s", &out)
		}
		time.Sleep(40 * time.Second)
		done()
		if got := out.String(); strings.Count(got, "\n") != 2 ||
			!strings.Contains(got, `msg="the start takes long" step="open the store" after=2s dir=/data`) {
			t.Errorf("after 41 seconds: %s", got)
		}
	})
}

package testserver_test

import (
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/testserver"
)

// TestClock checks that advancing a clock fires the timers that are due at once, and no stopped or later timers.
func TestClock(t *testing.T) {
	t.Parallel()
	clock := testserver.NewClock()
	began := clock.Now()
	called := make(chan string, 3)
	clock.AfterFunc(time.Hour, func() { called <- "hour" })
	clock.AfterFunc(48*time.Hour, func() { called <- "days" })
	stop := clock.AfterFunc(time.Hour, func() { called <- "stopped" })
	if !stop() || stop() {
		t.Error("an alarm is stopped once")
	}
	clock.Advance(24 * time.Hour)
	if got := <-called; got != "hour" {
		t.Errorf("called: %s", got)
	}
	if ahead := clock.Now().Sub(began); ahead < 24*time.Hour || ahead > 36*time.Hour {
		t.Errorf("the clock is %s ahead", ahead)
	}
	clock.Advance(24 * time.Hour)
	if got := <-called; got != "days" {
		t.Errorf("called: %s", got)
	}
	if len(called) > 0 {
		t.Errorf("called too: %s", <-called)
	}
}

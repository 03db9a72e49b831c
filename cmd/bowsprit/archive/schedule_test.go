package archive

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSchedule makes five backups, the third without success, in a directory with other files. The newest two and the
// other files stay, and a failure removes nothing.
func TestSchedule(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	others := []string{"bowsprit-1.tar", "bowsprit-20260101T000000Z.tar.old", "monday.tar"}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var notes bytes.Buffer
		var made []string
		calls := 0
		s := &schedule{dir: dir, period: 24 * time.Hour, keep: 2, notes: &notes}
		s.save = func(_ context.Context, file string) error {
			calls++
			if calls == 1 {
				for _, name := range others {
					if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
						return err
					}
				}
			}
			if calls == 3 {
				return errors.New("the disk is full")
			}
			made = append(made, filepath.Base(file))
			return os.WriteFile(file, nil, 0o600)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx) }()
		time.Sleep(4*s.period + time.Hour)
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(made) != 4 {
			t.Fatalf("%v, made %q", err, made)
		}
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		want := append(slices.Clone(others), made[2:]...)
		slices.Sort(want)
		if slices.Sort(left); !slices.Equal(left, want) {
			t.Errorf("left are %q, want %q", left, want)
		}
		if text := notes.String(); strings.Count(text, "Removed ") != 2 ||
			!strings.Contains(text, "nothing was saved: the disk is full; the next attempt is in 24h0m0s") {
			t.Errorf("notes: %s", text)
		}
	})
}

// TestScheduleEnds checks that a failure of the first backup ends the series, and that wrong values are refused.
func TestScheduleEnds(t *testing.T) {
	t.Parallel()
	failure := errors.New("no server")
	s := &schedule{dir: t.TempDir(), period: time.Hour, save: func(context.Context, string) error { return failure }}
	if err := s.run(t.Context()); !errors.Is(err, failure) {
		t.Error(err)
	}
	for want, wrong := range map[string]schedule{
		"--keep needs --schedule": {keep: 1},
		"at least 1m0s":           {period: time.Second},
		"--keep -1 is negative":   {period: time.Hour, keep: -1},
	} {
		if err := wrong.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := (&schedule{}).check(); err != nil {
		t.Error(err)
	}
}

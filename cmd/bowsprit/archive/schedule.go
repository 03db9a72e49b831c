package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// schedule is a series of backups in a directory, one file each.
type schedule struct {
	dir    string
	period time.Duration
	keep   int // the number of files to keep; 0 keeps all
	// save writes one backup.
	save func(ctx context.Context, file string) error
	// notes receives the errors of later backups, and the names of removed files.
	notes io.Writer
}

// shortest is the shortest period of a schedule. The names of files have seconds.
const shortest = time.Minute

// scheduled is the layout of the names of scheduled backups.
const scheduled = "bowsprit-20060102T150405Z.tar"

// ofSchedule matches the names of scheduled backups. Other files are never removed.
var ofSchedule = regexp.MustCompile(`^bowsprit-\d{8}T\d{6}Z\.tar$`)

// check returns an error for values that make no schedule.
func (s *schedule) check() error {
	switch {
	case s.period == 0 && s.keep != 0:
		return errors.New("--keep needs --schedule: add the time between two backups, such as --schedule=24h")
	case s.period < 0, s.period > 0 && s.period < shortest:
		return fmt.Errorf("--schedule %s: use a duration of at least %s, such as 24h", s.period, shortest)
	case s.keep < 0:
		return fmt.Errorf("--keep %d is negative: use the number of files to keep, or 0 for all", s.keep)
	}
	return nil
}

// run makes a backup now and after each period, until ctx ends. An error of the first one ends the series, because it
// is most likely a mistake; after an error of a later one, the series continues and no file is removed.
func (s *schedule) run(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := s.once(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	next := time.NewTicker(s.period)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		if err := s.once(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintf(s.notes, "bowsprit: nothing was saved: %v; the next attempt is in %s\n", err, s.period)
		}
	}
}

// once makes one backup, then removes the oldest ones beyond the number to keep.
func (s *schedule) once(ctx context.Context) error {
	if err := s.save(ctx, filepath.Join(s.dir, time.Now().UTC().Format(scheduled))); err != nil {
		return err
	}
	if s.keep == 0 {
		return nil
	}
	entries, err := os.ReadDir(s.dir) // sorted by name, the oldest first
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return !e.Type().IsRegular() || !ofSchedule.MatchString(e.Name())
	})
	for _, e := range entries[:max(0, len(entries)-s.keep)] {
		file := filepath.Join(s.dir, e.Name())
		if err := os.Remove(file); err != nil {
			return err
		}
		fmt.Fprintf(s.notes, "Removed %s.\n", file)
	}
	return nil
}

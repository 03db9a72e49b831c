//go:build !unix

package datadir

import "log/slog"

// On other systems access control lists protect directories, and directories of killed servers stay.

func keepPrivate(string) error { return nil }

func keepContentPrivate(string, *slog.Logger) error { return nil }

// Exposed returns nothing: the mode of a directory does not show its writers.
func Exposed(string) []string { return nil }

func holdDir(string) (release func(), err error) { return func() {}, nil }

func removeStale(string) {}

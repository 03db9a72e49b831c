//go:build !unix

package datadir

import "log/slog"

// Directories are protected by access control lists elsewhere, and what a killed server leaves behind stays.

func keepPrivate(string) error { return nil }

func keepContentPrivate(string, *slog.Logger) error { return nil }

// Exposed returns nothing: the mode of a directory does not show who may write it.
func Exposed(string) []string { return nil }

func holdDir(string) (release func(), err error) { return func() {}, nil }

func removeStale(string) {}

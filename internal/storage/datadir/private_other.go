//go:build !unix

package datadir

// Directories are protected by access control lists elsewhere, and what a killed server leaves behind stays.

func keepPrivate(string) error { return nil }

func holdDir(string) (release func(), err error) { return func() {}, nil }

func removeStale(string) {}

//go:build race

package reuse

// spoils is true in binaries with the race detector.
const spoils = true

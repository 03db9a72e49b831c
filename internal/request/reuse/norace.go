//go:build !race

package reuse

// spoils is false without the race detector: spoiling takes time.
const spoils = false

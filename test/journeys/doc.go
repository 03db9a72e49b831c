// Package journeys follows pages of the documentation in a clean Debian, word for word, from the installation of the
// package to the end of the page, and reports the time of each. Each journey has its own system, without a network,
// that runs only the programs that the page starts.
//
// `make journeys` runs the tests, with a chroot and a package that it builds. They need root, and are skipped without
// the variables that the target sets.
package journeys

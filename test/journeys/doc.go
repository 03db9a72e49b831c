// Package journeys follows pages of the documentation in a clean Debian, word for word, from the installation of the
// package to what the page ends with, and says how long each took. Each journey has a system of its own, without a
// network, in which nothing runs but what the page starts.
//
// `make journeys` calls it, with a chroot that it makes and a package that it builds. It needs root; without what the
// target sets, nothing is tested here.
package journeys

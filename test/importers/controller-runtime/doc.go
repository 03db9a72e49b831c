// Package controllerruntime is a program of another module that imports testserver and runs a controller against it. It
// is built twice: go.mod has the newest controller-runtime, controller-runtime-0.24.mod its predecessor.
package controllerruntime

// Package clientgo is a program of another module that imports testserver and uses it with client-go.
package clientgo

// Package reuse pools values whose memory is expensive to allocate.
//
// A pool is only correct if nothing refers to a value after Put. Binaries with the race detector check that: Put spoils
// the value, so that a late reader is reported as a race, or reads garbage that fails its test.
//
// Main types: Pool, and its form for buffers from Bytes. They are safe for concurrent use.
package reuse

import (
	"bytes"
	"sync"
)

// A Pool keeps values for later use, as sync.Pool does.
type Pool[T any] struct {
	pool  sync.Pool
	spoil func(T)
}

// New returns a pool. fresh returns a new value. spoil makes a returned value useless for a late reader and leaves it
// useful for the next Get; nil if the owner does both before Put.
func New[T any](fresh func() T, spoil func(T)) *Pool[T] {
	return &Pool[T]{pool: sync.Pool{New: func() any { return fresh() }}, spoil: spoil}
}

// Bytes returns a pool of empty buffers with a capacity of size bytes or more.
func Bytes(size int) *Pool[*[]byte] {
	return New(func() *[]byte { b := make([]byte, 0, size); return &b }, SpoilBytes)
}

// Get returns a value that no other goroutine has.
func (p *Pool[T]) Get() T { return p.pool.Get().(T) }

// Put returns a value to the pool. The caller must not use it any more.
func (p *Pool[T]) Put(v T) {
	if spoils && p.spoil != nil {
		p.spoil(v)
	}
	p.pool.Put(v)
}

// Spoiled is the byte that fills a spoiled buffer. It is not valid in JSON, UTF-8 or protobuf's field keys.
const Spoiled = 0xDB

// spoiledAtMost bounds the time of Put: late readers begin at the beginning.
const spoiledAtMost = 4 << 10

// SpoilBytes overwrites the first 4 KiB of a buffer, spare capacity included.
func SpoilBytes(b *[]byte) {
	copy((*b)[:min(cap(*b), spoiledAtMost)], garbage[:])
}

var garbage = [spoiledAtMost]byte(bytes.Repeat([]byte{Spoiled}, spoiledAtMost))

// Package format numbers the layout of a server's data, and rejects unknown layouts.
//
// It stands beside the path of requests, below datadir and store, which keep the number in a file and in etcd. A Mark
// is a value; the package has no state.
package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Current is the layout that this program writes: the files of the data directory, and keys and values in etcd. Only a
// change after which an older program would misread or lose data increments it. A program opens its own and lower
// formats; data without a number has format 1, which earlier versions wrote.
const Current = 1

// KeyPrefix is the prefix of the format marks in etcd: outside of the objects, where kube-apiserver does not look.
const KeyPrefix = "/bowsprit/format"

// Key returns the key of the mark of the objects below a prefix, with slashes at its ends or without.
func Key(objects string) string { return KeyPrefix + "/" + strings.Trim(objects, "/") + "/" }

// Mark is the format of data, with the program version that first wrote it.
type Mark struct {
	Format  int    `json:"format"`
	Version string `json:"version"`
}

// ErrNewer is of data that a later version of the program has written.
var ErrNewer = errors.New("the data is of a newer format")

// Parse reads a mark.
func Parse(data []byte) (m Mark, err error) {
	if err := json.Unmarshal(data, &m); err != nil || m.Format < 1 {
		return Mark{}, fmt.Errorf("%q contains no format", data)
	}
	return m, nil
}

// Of returns the mark of a program with the given version.
func Of(version string) Mark { return Mark{Format: Current, Version: version} }

// Text returns the mark as Parse reads it.
func (m Mark) Text() []byte {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // a number and a string always encode
	}
	return data
}

// Check returns ErrNewer if this program does not know the format. The argument describes the data.
func (m Mark) Check(noun string) error {
	if m.Format <= Current {
		return nil
	}
	by, start := "a later version", "that"
	if m.Version != "" {
		by, start = "bowsprit "+m.Version, "that version or a later one"
	}
	return fmt.Errorf("%w: %s was written by %s in format %d, and this version reads formats up to %d: start %s", ErrNewer,
		noun, by, m.Format, Current, start)
}

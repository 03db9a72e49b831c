package convert

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/bowsprit/bowsprit/internal/storage/delta"
)

// CompressedJSON is the media type of what compress makes.
const CompressedJSON = "application/vnd.bowsprit.compressed+json"

// compressedMagic begins a compressed document. The number of its dictionary follows, in one byte, then its size in
// bytes as a uvarint, then what delta makes of it.
const compressedMagic = "bow\x00"

// mostDecompressed is more than any document's size in bytes: bodies of requests have 3 MiB at the most.
const mostDecompressed = 64 << 20

// dictionary1 is what documents are told against: objects of a cluster with simulated nodes, one in each line, the
// frequent ones last. Values in stores depend on each byte of it, so it never changes: another one gets a number of its
// own, and this one stays.
//
//go:embed dictionary/1.jsonl
var dictionary1 []byte

// dictionaries are the bases of the dictionaries, by their numbers less one, made when they are first needed. The last
// one is for what is written.
var dictionaries = []func() *delta.Base{
	sync.OnceValue(func() *delta.Base { return delta.New(dictionary1, 14) }),
}

// errCompressed is of a value that begins as a compressed document, and is none.
var errCompressed = errors.New("cannot decompress")

// compress returns a JSON document in a sixth or less of its bytes, if it is like those in the dictionary.
func compress(doc []byte) []byte {
	number := len(dictionaries)
	out := make([]byte, 0, 64+len(doc)/4)
	out = append(append(out, compressedMagic...), byte(number))
	out = binary.AppendUvarint(out, uint64(len(doc)))
	return dictionaries[number-1]().Pack(out, doc)
}

// decompress returns the document that compress made value of.
func decompress(value []byte) ([]byte, error) {
	if len(value) == len(compressedMagic) {
		return nil, fmt.Errorf("%w: nothing follows the first %d bytes", errCompressed, len(value))
	}
	number, value := int(value[len(compressedMagic)]), value[len(compressedMagic)+1:]
	if number < 1 || number > len(dictionaries) {
		return nil, fmt.Errorf("%w: the value needs dictionary %d, and this program has %d: start the version of bowsprit "+
			"that wrote it, or a later one", errCompressed, number, len(dictionaries))
	}
	size, n := binary.Uvarint(value)
	if n <= 0 || size > mostDecompressed {
		return nil, fmt.Errorf("%w: the value does not say its size", errCompressed)
	}
	doc, err := dictionaries[number-1]().Unpack(value[n:], int(size))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCompressed, err)
	}
	return doc, nil
}

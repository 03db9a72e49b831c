package convert

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/bowsprit/bowsprit/internal/storage/delta"
)

// CompressedJSON is the media type of compress's output.
const CompressedJSON = "application/vnd.bowsprit.compressed+json"

// compressedMagic begins a compressed document. Then follow the number of its dictionary in one byte, its size in bytes
// as a uvarint, and the output of package delta.
const compressedMagic = "bow\x00"

// mostDecompressed is above any document's size in bytes: request bodies have at most 3 MiB.
const mostDecompressed = 64 << 20

// dictionary1 is the shared dictionary for encoding documents: objects of a cluster with simulated nodes, one in each
// line, the most frequent last. Stored values depend on each of its bytes, so it never changes: a new dictionary gets a
// new number, and this one stays.
//
//go:embed dictionary/1.jsonl
var dictionary1 []byte

// dictionaries holds the bases of the dictionaries, indexed by number minus one and created on first use. Writes use
// the last one.
var dictionaries = []func() *delta.Base{
	sync.OnceValue(func() *delta.Base { return delta.New(dictionary1, 14) }),
}

// errCompressed is of a value that begins as a compressed document, and is none.
var errCompressed = errors.New("cannot decompress")

// compress compresses a JSON document, to a sixth or less if it resembles the objects in the dictionary.
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
		return nil, fmt.Errorf("%w: the value has no size", errCompressed)
	}
	doc, err := dictionaries[number-1]().Unpack(value[n:], int(size))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCompressed, err)
	}
	return doc, nil
}

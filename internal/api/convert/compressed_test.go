package convert

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/delta"
)

// A dictionary never changes: stores have values that need each of its bytes.
func TestDictionariesStay(t *testing.T) {
	t.Parallel()
	want := []string{"8f5f0dba25f156a92da77158d50c3675a3ae703ebe710e4cbcdae9271b1ec512"}
	if len(dictionaries) != len(want) {
		t.Fatalf("%d dictionaries: note the sum of a new one here", len(dictionaries))
	}
	for i, dictionary := range dictionaries {
		text := dictionary().Text()
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want[i] {
			t.Errorf("dictionary %d is %x: what is compressed with it cannot be read any more", i+1, sum)
		}
		if len(text) > delta.Most {
			t.Errorf("dictionary %d has %d bytes: what is beyond %d is never used", i+1, len(text), delta.Most)
		}
	}
}

// Values that an earlier build has written are read.
func TestDecompressOld(t *testing.T) {
	t.Parallel()
	value, err := hex.DecodeString("626f7700014f001400000888e6070261089dc1070008c8b0050009b832000ecedd01166e616d65223a2278227d7d")
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := decompress(value); err != nil || string(doc) != storedMap {
		t.Errorf("%s %v", doc, err)
	}
}

// TestCompress checks that objects of kinds in the dictionary become small, with other names and values, too, and that
// unrelated documents grow only by a few bytes.
func TestCompress(t *testing.T) {
	t.Parallel()
	event := `{"action":"Binding","apiVersion":"v1","count":1,"eventTime":null,"firstTimestamp":"2027-01-02T03:04:05Z",` +
		`"involvedObject":{"apiVersion":"v1","kind":"Pod","name":"other-6b7f-x9w2k","namespace":"prod","uid":` +
		`"3625d626-0b89-4894-b0ef-05d864ec6807"},"kind":"Event","lastTimestamp":"2027-01-02T03:04:05Z","message":` +
		`"Successfully assigned prod/other-6b7f-x9w2k to worker-7","metadata":{"creationTimestamp":` +
		`"2027-01-02T03:04:05Z","name":"other-6b7f-x9w2k.18ebaa2a7d761ecc","namespace":"prod","uid":` +
		`"82e30e55-3e4b-48e8-af77-8dbb5faae7ca"},"reason":"Scheduled","reportingComponent":"default-scheduler",` +
		`"source":{"component":"default-scheduler"},"type":"Normal"}`
	noise := `{"a":"` + strings.Repeat("0xZ", 30_000) + "\x01\xff" + `"}`
	for name, test := range map[string]struct {
		doc  string
		most int
	}{
		"a pod": {benchPod, len(benchPod) / 3}, "an event": {event, len(event) / 3}, "an object": {storedMap, 100},
		"what is large": {noise, len(noise) + 20}, "nothing": {"", 10}, "a letter": {"{", 10},
		"noise": {"{!\"§$%&/()=?QWERTZUIOPÜ*ASDFGHJKLÖÄ'><YXCVBNM;:_", 80},
	} {
		value := compress([]byte(test.doc))
		if len(value) > test.most {
			t.Errorf("%s takes %d bytes of %d, more than %d", name, len(value), len(test.doc), test.most)
		}
		if got, err := decompress(value); err != nil || string(got) != test.doc {
			t.Errorf("%s came back as %s %v", name, got, err)
		}
		if encodingOf(value) != asCompressed {
			t.Errorf("%s is not known for what it is: %q", name, value)
		}
	}
}

// TestDecompressRefuses checks that truncated and foreign data is an error.
func TestDecompressRefuses(t *testing.T) {
	t.Parallel()
	s := NewStoring(nil, StoringOptions{Media: CompressedJSON})
	r := storedKinds()["built-in"]
	s.kinds[r.Prefix] = r
	value := compress([]byte(benchPod))
	for n := len(compressedMagic); n < len(value); n++ {
		if _, err := s.Decode(r.Prefix, value[:n]); !errors.Is(err, errCompressed) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	later := bytes.Clone(value)
	later[len(compressedMagic)] = 200
	_, err := s.Decode(r.Prefix, later)
	if err == nil || !strings.Contains(err.Error(), "needs dictionary 200, and this program has 1: start the version") {
		t.Errorf("with a later dictionary: %v", err)
	}
	large := binary.AppendUvarint([]byte(compressedMagic+"\x01"), mostDecompressed+1)
	if _, err := s.Decode(r.Prefix, large); err == nil || !strings.Contains(err.Error(), "has no size") {
		t.Errorf("of another size: %v", err)
	}
	later[len(compressedMagic)] = 0
	if _, err := s.Decode(r.Prefix, later); !errors.Is(err, errCompressed) {
		t.Errorf("with dictionary 0: %v", err)
	}
}

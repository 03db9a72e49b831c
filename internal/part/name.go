package part

import (
	"crypto/rand"
)

// suffixLetters are the letters of Kubernetes' generated names: without vowels and ambiguous digits, so that no words
// result.
const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

// NameSuffix returns the random end of a generated name, five letters.
func NameSuffix() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = suffixLetters[int(b[i])%len(suffixLetters)]
	}
	return string(b[:])
}

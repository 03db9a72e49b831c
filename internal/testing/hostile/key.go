package hostile

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"time"
)

// modulus returns a number of so many bits, a multiple of eight, which is no product of primes.
func modulus(bits int) *big.Int {
	n := new(big.Int).SetBytes(bytes.Repeat([]byte{0xf3}, bits/8))
	return n.SetBit(n, 0, 1)
}

type publicKeyInfo struct {
	Algorithm pkix.AlgorithmIdentifier
	Key       asn1.BitString
}

type signedPart struct {
	Part      asn1.RawValue
	Algorithm pkix.AlgorithmIdentifier
	Signature asn1.BitString
}

var (
	rsaKey     = algorithm(1)
	rsaWithSHA = algorithm(11)
	anyName    = asn1.RawValue{FullBytes: marshal(pkix.Name{CommonName: "a"}.ToRDNSequence())}
)

// algorithm returns an algorithm of PKCS #1.
func algorithm(number int) pkix.AlgorithmIdentifier {
	return pkix.AlgorithmIdentifier{
		Algorithm:  asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, number},
		Parameters: asn1.RawValue{Tag: asn1.TagNull},
	}
}

// Request returns a certificate signing request in DER with an RSA key of so many bits, a large exponent, and a wrong
// signature.
func Request(bits int) []byte {
	return signed(bits, struct {
		Version    int
		Subject    asn1.RawValue
		Key        publicKeyInfo
		Attributes []asn1.RawValue `asn1:"tag:0"`
	}{0, anyName, keyOf(bits), nil})
}

// Certificate returns a certificate in DER with such a key.
func Certificate(bits int) []byte {
	type validity struct{ From, To time.Time }
	return signed(bits, struct {
		Version   int `asn1:"explicit,tag:0"`
		Serial    int
		Algorithm pkix.AlgorithmIdentifier
		Issuer    asn1.RawValue
		Validity  validity
		Subject   asn1.RawValue
		Key       publicKeyInfo
	}{2, 1, rsaWithSHA, anyName, validity{time.Unix(0, 0).UTC(), time.Unix(1<<31, 0).UTC()}, anyName, keyOf(bits)})
}

func keyOf(bits int) publicKeyInfo {
	key := marshal(struct {
		N *big.Int
		E int
	}{modulus(bits), 1<<31 - 1})
	return publicKeyInfo{rsaKey, asn1.BitString{Bytes: key, BitLength: 8 * len(key)}}
}

func signed(bits int, part any) []byte {
	return marshal(signedPart{asn1.RawValue{FullBytes: marshal(part)}, rsaWithSHA,
		asn1.BitString{Bytes: bytes.Repeat([]byte{0x11}, bits/8), BitLength: bits}})
}

func marshal(v any) []byte {
	out, err := asn1.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

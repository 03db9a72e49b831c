// Package publickey bounds the RSA keys that clients and other programs choose.
//
// Go's library checks a signature with a key of any size, and its time grows with the square of the size: a certificate
// signing request of 3 MiB takes hours, and nothing can end the check. Every check with a key from outside goes through
// this package. The functions are pure and safe for concurrent use.
package publickey

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// MaxBits is the size of the largest RSA key. A check with it takes between a quarter and three quarters of a second,
// depending on the exponent.
const MaxBits = 131_072

// Check returns an error for an RSA key above MaxBits. Other keys have a fixed size.
func Check(key any) error {
	if key, ok := key.(*rsa.PublicKey); ok && key.N.BitLen() > MaxBits {
		return tooLarge(key.N.BitLen())
	}
	return nil
}

// CheckText returns an error for a modulus that has more than MaxBits in unpadded base64.
func CheckText(modulus string) error {
	if bits := len(modulus) * 6; bits > MaxBits+6 {
		return tooLarge(bits)
	}
	return nil
}

func tooLarge(bits int) error {
	return fmt.Errorf("the RSA key has %d bits: use a key of at most %d bits", bits, MaxBits)
}

// CheckSignature checks the signature of a certificate signing request.
func CheckSignature(r *x509.CertificateRequest) error {
	if err := Check(r.PublicKey); err != nil {
		return err
	}
	return r.CheckSignature()
}

// Authorities returns the pool of the certificates in a bundle of PEM. Like x509.CertPool it skips blocks that hold no
// certificate. The error is about a bundle without certificates, or with a key above MaxBits.
func Authorities(bundle []byte) (*x509.CertPool, error) {
	pool, empty := x509.NewCertPool(), true
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) != 0 {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if err := Check(one.PublicKey); err != nil {
			return nil, fmt.Errorf("unable to load root certificates: %w", err)
		}
		pool.AddCert(one)
		empty = false
	}
	if empty {
		return nil, errors.New("unable to load root certificates: unable to parse bytes as PEM block")
	}
	return pool, nil
}

package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/net/foreign/publickey"
	"github.com/bowsprit/bowsprit/internal/object"
)

// largestKey is how many bytes a key, its proof, or a request may have.
const largestKey = 10 * 1024

// requestedKey validates the key of a request for a pod's certificate: a PKCS#10 stub or, from older clients, a PKIX
// key with a signature of the pod's UID.
func requestedKey(val *rule.Validation, spec object.Object, path *field.Path) {
	stub, key, proof := bytesOf(spec["stubPKCS10Request"]), bytesOf(spec["pkixPublicKey"]),
		bytesOf(spec["proofOfPossession"])
	switch {
	case len(stub) > 0 && len(key) == 0 && len(proof) == 0:
		stubRequest(val, stub, path.Child("stubPKCS10Request"))
	case len(stub) == 0 && len(key) > 0 && len(proof) > 0:
		provenKey(val, key, proof, object.String(spec, "podUID"), path)
	default:
		val.Invalid(path, field.OmitValueType{},
			"exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")
	}
}

func stubRequest(val *rule.Validation, der []byte, path *field.Path) {
	if len(der) > largestKey {
		val.Add(field.TooLong(path, der, largestKey))
		return
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		val.Invalid(path, field.OmitValueType{}, "must be a valid PKCS#10 CSR")
		return
	}
	value, wrong := keyProblem(request.PublicKey, "P256, P384, or P521")
	switch {
	case wrong == unknownKey:
		val.Invalid(path, field.OmitValueType{}, wrong)
	case wrong != "":
		val.Invalid(path, value, wrong)
	case publickey.CheckSignature(request) != nil:
		val.Invalid(path, field.OmitValueType{}, "invalid signature")
	}
}

// provenKey requires proof to be the signature of a pod's UID by the key.
func provenKey(val *rule.Validation, der, proof []byte, uid string, path *field.Path) {
	at := path.Child("pkixPublicKey")
	if len(der) > largestKey {
		val.Add(field.TooLong(at, der, largestKey))
		return
	}
	if len(proof) > largestKey {
		val.Add(field.TooLong(path.Child("proofOfPossession"), proof, largestKey))
		return
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		val.Invalid(at, der, "must be a valid PKIX-serialized public key")
		return
	}
	switch value, wrong := keyProblem(key, "P256 or P384"); {
	case wrong == unknownKey:
		val.Invalid(at, der, wrong)
	case wrong != "":
		val.Invalid(at, value, wrong)
	case !signed(key, uid, proof):
		val.Invalid(path.Child("proofOfPossession"), field.OmitValueType{},
			"could not verify proof-of-possession signature")
	}
}

const unknownKey = "unknown public key type; supported types are Ed25519, ECDSA, and RSA"

// keyProblem returns the error in a key, with the wrong value; curves are the curves that the error names.
func keyProblem(key crypto.PublicKey, curves string) (value, wrong string) {
	switch key := key.(type) {
	case ed25519.PublicKey:
		return "", ""
	case *ecdsa.PublicKey:
		if !slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, key.Curve) {
			return "curve " + key.Curve.Params().Name, "elliptic public keys must use curve " + curves
		}
	case *rsa.PublicKey:
		if bits := key.Size() * 8; bits != 3072 && bits != 4096 {
			return fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096"
		}
	default:
		return "", unknownKey
	}
	return "", ""
}

// signed reports whether a text was signed by the key's owner.
func signed(key crypto.PublicKey, text string, signature []byte) bool {
	hash := sha256.Sum256([]byte(text))
	switch key := key.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, []byte(text), signature)
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, hash[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPSS(key, crypto.SHA256, hash[:], signature, nil) == nil
	}
	return false
}

// requestedPublicKey returns the key of an accepted request; an error is about an unreadable one.
func requestedPublicKey(spec object.Object) (crypto.PublicKey, *field.Error) {
	path := field.NewPath("spec")
	if stub := bytesOf(spec["stubPKCS10Request"]); len(stub) > 0 {
		request, err := x509.ParseCertificateRequest(stub)
		if err != nil {
			return nil, field.Invalid(path.Child("stubPKCS10Request"), field.OmitValueType{},
				"must be a valid PKCS#10 CSR")
		}
		return request.PublicKey, nil
	}
	key, err := x509.ParsePKIXPublicKey(bytesOf(spec["pkixPublicKey"]))
	if err != nil {
		return nil, field.Invalid(path.Child("pkixPublicKey"), field.OmitValueType{},
			"must be a valid PKIX-serialized public key")
	}
	return key, nil
}

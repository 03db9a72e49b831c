package check

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// signingFunctions are about certificate signing requests.
func signingFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"signingRequest":  func(j *judgement, _ place) { j.signingRequest() },
		"signingUpdate":   func(j *judgement, _ place) { j.signingUpdate("") },
		"signingStatus":   func(j *judgement, _ place) { j.signingUpdate("status") },
		"signingApproval": func(j *judgement, _ place) { j.signingUpdate("approval") },
	}
}

// keyUsages are what a certificate may be for.
var keyUsages = []string{
	"any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
	"decipher only", "digital signature",
	"email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement",
	"key encipherment", "microsoft sgc",
	"netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping",
}

const legacySigner = "kubernetes.io/legacy-unknown"

// signingRequest judges a request. What is wrong with the stored one already is let be.
func (j *judgement) signingRequest() {
	spec, was, path := inner(j.obj, "spec"), inner(j.old, "spec"), field.NewPath("spec")
	if err := checkRequest(bytesOf(spec["request"])); err != nil {
		j.invalid(path.Child("request"), spec["request"], err.Error())
	}
	usages, before := texts(spec["usages"]), texts(was["usages"])
	if len(usages) == 0 {
		j.required(path.Child("usages"), "")
	}
	unknown := func(u string) bool { return !slices.Contains(keyUsages, u) }
	if !slices.ContainsFunc(before, unknown) {
		for i, u := range usages {
			if unknown(u) {
				j.unsupported(path.Child("usages").Index(i), u, keyUsages...)
			}
		}
	}
	if !repeats(before) {
		for i, u := range usages {
			if slices.Contains(usages[:i], u) {
				j.duplicate(path.Child("usages").Index(i), u)
			}
		}
	}
	if signer := text1(spec, "signerName"); signer == legacySigner && text1(was, "signerName") != legacySigner {
		j.invalid(path.Child("signerName"), signer, "the legacy signerName is not allowed via this API version")
	} else {
		j.signerName(signer, path.Child("signerName"))
	}
	if n, ok := number(spec, "expirationSeconds"); ok && n < 600 {
		j.invalid(path.Child("expirationSeconds"), n, "may not specify a duration less than 600 seconds (10 minutes)")
	}
	j.signingConditions()
	certificate, had := bytesOf(inner(j.obj, "status")["certificate"]), bytesOf(inner(j.old, "status")["certificate"])
	if j.old != nil && (string(certificate) == string(had) || checkCertificates(had) != nil) {
		return
	}
	if err := checkCertificates(certificate); err != nil {
		j.invalid(field.NewPath("status", "certificate"), "<certificate data>", err.Error())
	}
}

// checkRequest wants a certificate request of PKCS#10 in PEM, signed by its own key.
func checkRequest(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return request.CheckSignature()
}

// checkCertificates wants certificates in PEM and nothing else between them.
func checkCertificates(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	n := 0
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) != 0 {
			return errors.New("no PEM block headers are permitted")
		}
		n++
		all, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
		data = rest
	}
	if n == 0 {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}

// signerName judges a name like example.com/signer.
func (j *judgement) signerName(name string, path *field.Path) {
	if name == "" {
		j.required(path, "")
		return
	}
	parts := strings.Split(name, "/")
	if len(parts) != 2 {
		j.invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
		return
	}
	const longest = validation.DNS1123SubdomainMaxLength
	if len(parts[0]) > longest {
		j.add(field.TooLong(path, "", longest))
	}
	segments := func(part string, wrong func(string) []string) int {
		labels := strings.Split(part, ".")
		for _, label := range labels {
			if details := wrong(label); len(details) > 0 {
				for _, d := range details {
					j.invalid(path, part, fmt.Sprintf("validating label %q: %s", label, d))
				}
				break
			}
		}
		return len(labels)
	}
	if segments(parts[0], validation.IsDNS1123Label) < 2 {
		j.invalid(path, parts[0], "should be a domain with at least two segments separated by dots")
	}
	segments(parts[1], validation.IsDNS1123Subdomain)
	if most := longest + 1 + longest + validation.DNS1123LabelMaxLength + 1; len(name) > most {
		j.add(field.TooLong(path, "", most))
	}
}

// decisions are the conditions that somebody gives a request for good.
var decisions = []string{"Approved", "Denied", "Failed"}

func (j *judgement) signingConditions() {
	list, before := objects(inner(j.obj, "status")["conditions"]), objects(inner(j.old, "status")["conditions"])
	path := field.NewPath("status", "conditions")
	decided := len(ofType(before, "Approved")) > 0 && len(ofType(before, "Denied")) > 0
	had, seen := types(before), map[string]bool{}
	for i, c := range list {
		kind, at := text1(c, "type"), path.Index(i)
		if kind == "" && !slices.Contains(had, "") {
			j.required(at.Child("type"), "")
		}
		allowed := []string{"False", "True", "Unknown"}
		if slices.Contains(decisions, kind) {
			allowed = []string{"True"}
		}
		switch status := text1(c, "status"); {
		case status == "":
			j.required(at.Child("status"), "")
		case !slices.Contains(allowed, status):
			j.unsupported(at.Child("status"), status, allowed...)
		}
		if other := map[string]string{"Approved": "Denied", "Denied": "Approved"}[kind]; other != "" && seen[other] &&
			!decided {
			j.invalid(path, kind, "Approved and Denied conditions are mutually exclusive")
		}
		if seen[kind] && !repeats(had) {
			j.duplicate(at.Child("type"), kind)
		}
		seen[kind] = true
	}
}

// signingUpdate: decisions stay. Approval and denial come by way of approval alone, the certificate by way of status,
// once.
func (j *judgement) signingUpdate(subresource string) {
	if subresource != "" {
		j.signingRequest()
	}
	status, was := inner(j.obj, "status"), inner(j.old, "status")
	list, before, path := objects(status["conditions"]), objects(was["conditions"]),
		field.NewPath("status", "conditions")
	for _, kind := range decisions {
		if len(ofType(list, kind)) < len(ofType(before, kind)) {
			j.forbidden(path, fmt.Sprintf("updates may not remove a condition of type %q", kind))
		}
	}
	for _, kind := range decisions[:2] {
		now, had := ofType(list, kind), ofType(before, kind)
		switch {
		case subresource == "approval" || len(now) < len(had):
		case len(now) > len(had):
			j.forbidden(path, fmt.Sprintf("updates may not add a condition of type %q", kind))
		case !slices.EqualFunc(now, had, func(a, b object) bool { return same(a, b) }):
			j.forbidden(path,
				fmt.Sprintf("updates may not modify a condition of type %q\n%v", kind, difference(had, now)))
		}
	}
	switch certificate, had := text1(status, "certificate"), text1(was, "certificate"); {
	case certificate == had:
	case subresource != "status":
		j.forbidden(field.NewPath("status", "certificate"), "updates may not set certificate content")
	case had != "":
		j.forbidden(field.NewPath("status", "certificate"), "updates may not modify existing certificate content")
	}
}

// ofType returns the conditions of a type.
func ofType(list []object, kind string) []object {
	return slices.DeleteFunc(slices.Clone(list), func(c object) bool { return text1(c, "type") != kind })
}

func types(list []object) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = text1(c, "type")
	}
	return out
}

// repeats tells whether a value is there twice.
func repeats(list []string) bool {
	for i, s := range list {
		if slices.Contains(list[:i], s) {
			return true
		}
	}
	return false
}

// bytesOf returns what base64 text stands for.
func bytesOf(v any) []byte {
	s, _ := v.(string)
	data, _ := base64.StdEncoding.DecodeString(s) // decoding has shown that it can be read
	return data
}

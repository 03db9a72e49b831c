package certificates

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/net/foreign/publickey"
	"github.com/bowsprit/bowsprit/internal/object"
)

func certificateSigningRequestKind() rule.Kind {
	return rule.Of[certificatesv1.CertificateSigningRequest](rule.Kind{
		Group: certificatesV1, Kind: "CertificateSigningRequest", Plural: "certificatesigningrequests",
		Short:         []string{"csr"},
		ClusterScoped: true, Status: true,
		Subresources: []catalog.Subresource{
			rule.ObjectSubresource("CertificateSigningRequest", "approval", rule.ViewVerbs...),
		},
		ResetFields: map[string]catalog.ResetFields{
			"":         rule.Except("spec", "status"),
			"status":   rule.Except("spec", "status.conditions"),
			"approval": rule.Except("spec", "status.certificate"),
		},
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(signingRequestCells), ValidName: rule.NameIsSegment,
			PrepareCreate: prepareSigningRequestCreate,
			PrepareUpdate: prepareSigningRequestUpdate, UnconditionalUpdate: true,
			FieldLabels: rule.FieldLabels("spec.signerName"),
		},
	})
}

func signingRequestCells(r *certificatesv1.CertificateSigningRequest, e catalog.Env) []any {
	requested := rule.None
	if s := r.Spec.ExpirationSeconds; s != nil {
		requested = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	return []any{r.Name, rule.Ago(r.CreationTimestamp, e), rule.OrNone(r.Spec.SignerName), r.Spec.Username, requested,
		signingState(r)}
}

func signingState(r *certificatesv1.CertificateSigningRequest) string {
	is := func(kind certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(r.Status.Conditions,
			func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
	}
	state := "Pending"
	switch {
	case is(certificatesv1.CertificateDenied):
		state = "Denied"
	case is(certificatesv1.CertificateApproved):
		state = "Approved"
	}
	if is(certificatesv1.CertificateFailed) {
		state += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		state += ",Issued"
	}
	return state
}

var certificatesV1 = rule.Group{Name: "certificates.k8s.io", Version: "v1", Priority: 17300, Rank: 15}

// prepareSigningRequestCreate records the caller as the requester, whatever the object contains, and clears the status.
func prepareSigningRequestCreate(obj object.Object, e catalog.Env) {
	spec := object.Child(obj, "spec")
	for _, name := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, name)
	}
	if u := e.User; u != nil {
		spec["username"] = u.GetName()
		if uid := u.GetUID(); uid != "" {
			spec["uid"] = uid
		}
		if groups := u.GetGroups(); len(groups) > 0 {
			spec["groups"] = anyList(groups)
		}
		extra := object.Object{}
		for key, values := range u.GetExtra() {
			extra[key] = anyList(values)
		}
		if len(extra) > 0 {
			spec["extra"] = extra
		}
	}
	obj["status"] = object.Object{}
}

// prepareSigningRequestUpdate restricts the changed fields: an update changes only metadata, one of approval only the
// conditions, and one of status the status except Approved and Denied. Validation rejects changes of these by status.
func prepareSigningRequestUpdate(obj, old object.Object, subresource string, e catalog.Env) {
	rule.Keep(obj, old, "spec")
	if subresource == "" {
		rule.Keep(obj, old, "status")
		return
	}
	oldStatus, _ := old["status"].(map[string]any)
	before := object.Objects(oldStatus["conditions"])
	conditions := object.Objects(object.Child(obj, "status")["conditions"])
	if subresource == "approval" {
		status := rule.CopyOf(oldStatus)
		setOrDelete(status, "conditions", object.Child(obj, "status")["conditions"])
		obj["status"] = status
	} else {
		for _, decision := range []string{"Approved", "Denied"} {
			if had, has := ofType(before, decision), ofType(conditions, decision); len(had) == len(has) {
				for i := range has {
					clear(has[i])
					maps.Copy(has[i], had[i])
				}
			}
		}
	}
	stampConditions(conditions, before, e.Now)
}

func setOrDelete(obj object.Object, name string, v any) {
	if v == nil {
		delete(obj, name)
	} else {
		obj[name] = v
	}
}

// ofType returns the conditions of a type.
func ofType(conditions []object.Object, name string) []object.Object {
	var out []object.Object
	for _, c := range conditions {
		if object.String(c, "type") == name {
			out = append(out, c)
		}
	}
	return out
}

// stampConditions sets missing times of conditions: a condition with an unchanged status keeps its time.
func stampConditions(conditions, before []object.Object, now time.Time) {
	type state struct{ kind, status string }
	stateOf := func(c object.Object) state { return state{object.String(c, "type"), object.String(c, "status")} }
	since := map[state]any{} // the first time of each state before
	for _, c := range before {
		if at := c["lastTransitionTime"]; at != nil && since[stateOf(c)] == nil {
			since[stateOf(c)] = at
		}
	}
	stamp := now.UTC().Format(time.RFC3339)
	for _, c := range conditions {
		if c["lastUpdateTime"] == nil {
			c["lastUpdateTime"] = stamp
		}
		if c["lastTransitionTime"] != nil {
			continue
		}
		c["lastTransitionTime"] = stamp
		if at := since[stateOf(c)]; at != nil {
			c["lastTransitionTime"] = at
		}
	}
}

func anyList(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

// keyUsages are the known usages of certificates.
var keyUsages = []string{
	"any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
	"decipher only", "digital signature",
	"email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement",
	"key encipherment", "microsoft sgc",
	"netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping",
}

const legacySigner = "kubernetes.io/legacy-unknown"

// signingRequest validates a request. It ignores errors that the stored one already has.
func signingRequest(val *rule.Validation) {
	spec, was, path := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec"), field.NewPath("spec")
	if err := checkRequest(bytesOf(spec["request"])); err != nil {
		val.Invalid(path.Child("request"), spec["request"], err.Error())
	}
	usages, before := rule.Strings(spec["usages"]), rule.Strings(was["usages"])
	if len(usages) == 0 {
		val.Required(path.Child("usages"), "")
	}
	unknown := func(u string) bool { return !slices.Contains(keyUsages, u) }
	if !slices.ContainsFunc(before, unknown) {
		for i, u := range usages {
			if unknown(u) {
				val.Unsupported(path.Child("usages").Index(i), u, keyUsages...)
			}
		}
	}
	if !repeats(before) {
		seen := sets.Set[string]{}
		for i, u := range usages {
			if seen.Has(u) {
				val.Duplicate(path.Child("usages").Index(i), u)
			}
			seen.Insert(u)
		}
	}
	if signer := object.String(spec, "signerName"); signer == legacySigner &&
		object.String(was, "signerName") != legacySigner {
		val.Invalid(path.Child("signerName"), signer, "the legacy signerName is not allowed via this API version")
	} else {
		rule.SignerName(val, signer, path.Child("signerName"))
	}
	if n, ok := object.Int(spec, "expirationSeconds"); ok && n < 600 {
		val.Invalid(path.Child("expirationSeconds"), n, "may not specify a duration less than 600 seconds (10 minutes)")
	}
	signingConditions(val)
	certificate, had := bytesOf(object.Map(val.Obj, "status")["certificate"]),
		bytesOf(object.Map(val.Old, "status")["certificate"])
	if val.Old != nil && (string(certificate) == string(had) || checkCertificates(had) != nil) {
		return
	}
	if err := checkCertificates(certificate); err != nil {
		val.Invalid(field.NewPath("status", "certificate"), "<certificate data>", err.Error())
	}
}

// checkRequest requires a PKCS#10 certificate request in PEM, signed by its own key.
func checkRequest(data []byte) error {
	request, err := ParseRequest(data)
	if err != nil {
		return err
	}
	return publickey.CheckSignature(request)
}

// RequestOf returns the request of a CertificateSigningRequest in decoded JSON, where it is base64 of PEM.
func RequestOf(obj map[string]any) (*x509.CertificateRequest, error) {
	text, _ := object.Map(obj, "spec")["request"].(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return ParseRequest(data)
}

// ParseRequest returns the request of PKCS#10 that data has in PEM. Its signature is not checked.
func ParseRequest(data []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

// checkCertificates requires certificates in PEM and nothing else.
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

// decisions are the permanent conditions of an approver or a signer.
var decisions = []string{"Approved", "Denied", "Failed"}

func signingConditions(val *rule.Validation) {
	list, before := rule.Objects(object.Map(val.Obj, "status")["conditions"]),
		rule.Objects(object.Map(val.Old, "status")["conditions"])
	path := field.NewPath("status", "conditions")
	decided := len(conditionsOfType(before, "Approved")) > 0 && len(conditionsOfType(before, "Denied")) > 0
	had, seen := types(before), map[string]bool{}
	hadEmpty, repeated := slices.Contains(had, ""), repeats(had)
	for i, c := range list {
		kind, at := object.String(c, "type"), path.Index(i)
		if kind == "" && !hadEmpty {
			val.Required(at.Child("type"), "")
		}
		allowed := []string{"False", "True", "Unknown"}
		if slices.Contains(decisions, kind) {
			allowed = []string{"True"}
		}
		switch status := object.String(c, "status"); {
		case status == "":
			val.Required(at.Child("status"), "")
		case !slices.Contains(allowed, status):
			val.Unsupported(at.Child("status"), status, allowed...)
		}
		if other := map[string]string{"Approved": "Denied", "Denied": "Approved"}[kind]; other != "" && seen[other] &&
			!decided {
			val.Invalid(path, kind, "Approved and Denied conditions are mutually exclusive")
		}
		if seen[kind] && !repeated {
			val.Duplicate(at.Child("type"), kind)
		}
		seen[kind] = true
	}
}

// signingUpdate checks that decisions stay, that approval and denial come only through approval, and the certificate
// only through status, once.
func signingUpdate(val *rule.Validation, subresource string) {
	if subresource != "" {
		signingRequest(val)
	}
	status, was := object.Map(val.Obj, "status"), object.Map(val.Old, "status")
	list, before, path := rule.Objects(status["conditions"]), rule.Objects(was["conditions"]),
		field.NewPath("status", "conditions")
	for _, kind := range decisions {
		if len(conditionsOfType(list, kind)) < len(conditionsOfType(before, kind)) {
			val.Forbidden(path, fmt.Sprintf("updates may not remove a condition of type %q", kind))
		}
	}
	for _, kind := range decisions[:2] {
		now, had := conditionsOfType(list, kind), conditionsOfType(before, kind)
		switch {
		case subresource == "approval" || len(now) < len(had):
		case len(now) > len(had):
			val.Forbidden(path, fmt.Sprintf("updates may not add a condition of type %q", kind))
		case !slices.EqualFunc(now, had, func(a, b object.Object) bool { return rule.Equivalent(a, b) }):
			val.Forbidden(path,
				fmt.Sprintf("updates may not modify a condition of type %q\n%v", kind, rule.Difference(had, now)))
		}
	}
	switch certificate, had := object.String(status, "certificate"), object.String(was, "certificate"); {
	case certificate == had:
	case subresource != "status":
		val.Forbidden(field.NewPath("status", "certificate"), "updates may not set certificate content")
	case had != "":
		val.Forbidden(field.NewPath("status", "certificate"), "updates may not modify existing certificate content")
	}
}

// conditionsOfType returns the conditions of a type.
func conditionsOfType(list []object.Object, kind string) []object.Object {
	return slices.DeleteFunc(slices.Clone(list), func(c object.Object) bool { return object.String(c, "type") != kind })
}

func types(list []object.Object) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = object.String(c, "type")
	}
	return out
}

// repeats reports whether a list has duplicates.
func repeats(list []string) bool { return sets.New(list...).Len() < len(list) }

// bytesOf decodes base64.
func bytesOf(v any) []byte {
	s, _ := v.(string)
	data, _ := base64.StdEncoding.DecodeString(s) // validated when decoding
	return data
}

// certificateSigningRequestFunctions are the functions that certificate_signing_request.txt names.
func certificateSigningRequestFunctions() rule.Functions {
	return rule.Functions{
		"signingApproval": func(val *rule.Validation, _ rule.Value) { signingUpdate(val, "approval") },
		"signingRequest":  func(val *rule.Validation, _ rule.Value) { signingRequest(val) },
		"signingStatus":   func(val *rule.Validation, _ rule.Value) { signingUpdate(val, "status") },
		"signingUpdate":   func(val *rule.Validation, _ rule.Value) { signingUpdate(val, "") },
	}
}

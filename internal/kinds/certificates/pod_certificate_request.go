package certificates

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func podCertificateRequestKind() rule.Kind {
	return rule.Of[certificatesv1beta1.PodCertificateRequest](rule.Kind{
		Group: certificatesV1beta1, Kind: "PodCertificateRequest", Plural: "podcertificaterequests",
		Status: true, StatusOnly: true, OnDemand: true,
		Also:    rule.Newer[certificatesv1.PodCertificateRequest](certificatesV1),
		Convert: dropProvenKey,
		Restore: restoreProvenKey,
		Strategy: &catalog.Strategy{
			Cells:       rule.Printed(podCertificateCells),
			FieldLabels: rule.FieldLabels("spec.signerName", "spec.podName", "spec.nodeName"),
		},
	})
}

// keyFields are the fields of the spec that only the older version has.
var keyFields = []string{"pkixPublicKey", "proofOfPossession"}

func dropProvenKey(_, to *catalog.Version, obj object.Object) error {
	if to.Name == certificatesV1.Version {
		spec := object.Map(obj, "spec")
		for _, name := range keyFields {
			delete(spec, name)
		}
	}
	return nil
}

func restoreProvenKey(lacking *catalog.Version, was, obj object.Object) {
	if lacking.Name != certificatesV1.Version {
		return
	}
	from, spec := object.Map(was, "spec"), object.Child(obj, "spec")
	for _, name := range keyFields {
		if v, ok := from[name]; ok {
			spec[name] = v
		}
	}
}

func podCertificateCells(r *certificatesv1beta1.PodCertificateRequest, e catalog.Env) []any {
	state := "Pending"
	for _, c := range r.Status.Conditions {
		if isFinal(c.Type) {
			state = c.Type
		}
	}
	return []any{r.Name, r.Spec.PodName, r.Spec.ServiceAccountName, string(r.Spec.NodeName), r.Spec.SignerName, state,
		labels.FormatLabels(r.Spec.UnverifiedUserAnnotations)}
}

// podRequest validates the spec of a new request.
func podRequest(val *rule.Validation) {
	spec, path := object.Map(val.Obj, "spec"), field.NewPath("spec")
	text := func(name string) string { return object.String(spec, name) }
	signer := text("signerName")
	rule.SignerName(val, signer, path.Child("signerName"))
	rule.UserAnnotations(val, object.Map(spec, "unverifiedUserAnnotations"), path.Child("unverifiedUserAnnotations"))
	for _, of := range []struct {
		name, uid string
		wrong     func(string, bool) []string
	}{
		{"podName", "podUID", apivalidation.NameIsDNSSubdomain},
		{"serviceAccountName", "serviceAccountUID", apivalidation.ValidateServiceAccountName},
		{"nodeName", "nodeUID", apivalidation.NameIsDNSSubdomain},
	} {
		val.Invalids(path.Child(of.name), text(of.name), of.wrong(text(of.name), false))
		switch uid, at := text(of.uid), path.Child(of.uid); {
		case uid == "":
			val.Invalid(at, uid, "must not be empty")
		case len(uid) > 128:
			val.Add(field.TooLong(at, uid, 128))
		}
	}
	seconds, ok := object.Int(spec, "maxExpirationSeconds")
	if !ok {
		val.Required(path.Child("maxExpirationSeconds"), "must be set")
		return
	}
	shortest, longest := rule.CertificateLife(signer)
	if seconds < shortest || seconds > longest {
		val.Invalid(path.Child("maxExpirationSeconds"), seconds,
			fmt.Sprintf("must be in the range [%d, %d]", shortest, longest))
	}
	requestedKey(val, spec, path)
}

// podRequestUpdate checks that the spec is unchanged.
func podRequestUpdate(val *rule.Validation) {
	if was := val.Old["spec"]; !rule.Equivalent(val.Obj["spec"], was) {
		val.Invalid(field.NewPath("spec"), val.Obj["spec"], apivalidation.FieldImmutableErrorMsg)
	}
}

// podCertificateRequestFunctions are the functions that pod_certificate_request.txt names.
func podCertificateRequestFunctions() rule.Functions {
	return rule.Functions{
		"podRequest":       func(val *rule.Validation, _ rule.Value) { podRequest(val) },
		"podRequestStatus": func(val *rule.Validation, _ rule.Value) { podRequestStatus(val) },
		"podRequestUpdate": func(val *rule.Validation, _ rule.Value) { podRequestUpdate(val) },
	}
}

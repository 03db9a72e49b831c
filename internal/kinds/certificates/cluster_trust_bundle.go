package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func clusterTrustBundleKind() rule.Kind {
	return rule.Of[certificatesv1.ClusterTrustBundle](rule.Kind{
		Group: certificatesV1, Kind: "ClusterTrustBundle", Plural: "clustertrustbundles",
		ClusterScoped: true,
		Also: slices.Concat(rule.OnDemand[certificatesv1beta1.ClusterTrustBundle](certificatesV1beta1),
			rule.OnDemand[certificatesv1alpha1.ClusterTrustBundle](certificatesV1alpha1)),
		Form: rule.StoredAs("certificates.k8s.io", "v1", "v1beta1"),
		Strategy: &catalog.Strategy{
			Cells:       rule.Printed(trustBundleCells),
			ValidName:   rule.NameIsSegment, // rule.TrustBundleName checks the signer
			FieldLabels: rule.FieldLabels("spec.signerName"),
		},
	})
}

var (
	certificatesV1beta1  = rule.Group{Name: "certificates.k8s.io", Version: "v1beta1", Priority: 17300, Rank: 9}
	certificatesV1alpha1 = rule.Group{Name: "certificates.k8s.io", Version: "v1alpha1", Priority: 17300, Rank: 1}
)

func trustBundleCells(b *certificatesv1.ClusterTrustBundle, _ catalog.Env) []any {
	return []any{b.Name, rule.OrNone(b.Spec.SignerName)}
}

// trustBundle validates a bundle. An update that leaves the certificates as they are does not have them read again.
func trustBundle(val *rule.Validation) {
	spec, was := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec")
	signer, bundle := object.String(spec, "signerName"), object.String(spec, "trustBundle")
	meta, path := object.Map(val.Obj, "metadata"), field.NewPath("metadata")
	if prefix := object.String(meta, "generateName"); prefix != "" {
		for _, wrong := range rule.TrustBundleName(signer, prefix, true) {
			val.Invalid(path.Child("generateName"), prefix, wrong)
		}
	}
	if name := object.String(meta, "name"); name != "" {
		for _, wrong := range rule.TrustBundleName(signer, name, false) {
			val.Invalid(path.Child("name"), name, wrong)
		}
	}
	path = field.NewPath("spec")
	if signer != "" {
		rule.SignerName(val, signer, path.Child("signerName"))
	}
	if val.Old == nil || bundle != object.String(was, "trustBundle") {
		trustAnchors(val, bundle, path.Child("trustBundle"))
	}
	if val.Old != nil && signer != object.String(was, "signerName") {
		val.Invalid(path.Child("signerName"), signer, apivalidation.FieldImmutableErrorMsg)
	}
}

// largestBundle is how many bytes the certificates of a bundle may have.
const largestBundle = 1 << 20

// trustAnchors validates the CA certificates in PEM: at least one, without duplicates.
func trustAnchors(val *rule.Validation, text string, path *field.Path) {
	if len(text) > largestBundle {
		val.Add(field.TooLong(path, "", largestBundle))
		return
	}
	wrong := false
	invalid := func(format string, args ...any) {
		wrong = true
		val.Invalid(path, "<value omitted>", fmt.Sprintf(format, args...))
	}
	at := map[string][]int{}
	var first []string // each certificate once
	for i, rest := 0, []byte(text); ; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if problem := trustAnchor(block); problem != "" {
			invalid("entry %d %s", i, problem)
			continue
		}
		der := string(block.Bytes)
		if at[der] == nil {
			first = append(first, der)
		}
		at[der] = append(at[der], i)
	}
	if wrong {
		return // further errors may be consequences
	}
	if len(first) == 0 {
		invalid("at least one trust anchor must be provided")
	}
	for _, der := range first {
		if indexes := at[der]; len(indexes) > 1 {
			invalid("duplicate trust anchor (indices %v)", indexes)
		}
	}
}

// trustAnchor returns the error in a PEM block of a CA certificate.
func trustAnchor(block *pem.Block) string {
	switch {
	case block.Type != "CERTIFICATE":
		return "has bad block type: " + block.Type
	case len(block.Headers) > 0:
		return "has PEM block headers"
	}
	c, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "does not parse as X.509"
	case !c.IsCA:
		return "does not have the CA bit set"
	case !c.BasicConstraintsValid:
		return "has invalid basic constraints"
	}
	return ""
}

// clusterTrustBundleFunctions are the functions that cluster_trust_bundle.txt names.
func clusterTrustBundleFunctions() rule.Functions {
	return rule.Functions{
		"trustBundle": func(val *rule.Validation, _ rule.Value) { trustBundle(val) },
	}
}

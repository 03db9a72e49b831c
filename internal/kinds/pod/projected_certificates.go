package pod

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// bundleProjection is the source of a ClusterTrustBundle, as Kubernetes shows it in errors: with the names of its Go
// fields.
type bundleProjection struct {
	Name, SignerName *string
	LabelSelector    *metav1.LabelSelector
	Optional         *bool
	Path             string
}

func newBundleProjection(v object.Object) bundleProjection {
	text := func(name string) *string {
		if s, ok := v[name].(string); ok {
			return &s
		}
		return nil
	}
	b := bundleProjection{
		Name: text("name"), SignerName: text("signerName"), LabelSelector: rule.LabelSelector(v["labelSelector"]),
		Path: object.String(v, "path"),
	}
	if optional, ok := v["optional"].(bool); ok {
		b.Optional = &optional
	}
	return b
}

// trustBundle validates a source with the certificates of one ClusterTrustBundle, or of all bundles of a signer.
func (p *projection) trustBundle(v object.Object, path *field.Path) {
	switch b := newBundleProjection(v); {
	case b.Name != nil && b.SignerName != nil:
		p.Invalid(path, b, "only one of name and signerName may be used")
	case b.Name != nil:
		p.bundleName(*b.Name, path.Child("name"))
		if b.LabelSelector != nil {
			p.Invalid(path.Child("labelSelector"), b.LabelSelector, "labelSelector must be unset if name is specified")
		}
	case b.SignerName != nil:
		at := path.Child("signerName")
		if *b.SignerName == "" {
			p.Required(at, "must be a valid signer name")
		}
		rule.SignerName(p.Validation, *b.SignerName, at)
		p.Errs = append(p.Errs, rule.SelectorErrors(b.LabelSelector, false, path.Child("labelSelector"))...)
	default:
		p.Required(path, "either name or signerName must be specified")
	}
	file, at := object.String(v, "path"), path.Child("path")
	if file == "" {
		p.Required(at, "")
	}
	p.Invalids(at, file, rule.Unreserved(file))
	p.take(file, file)
}

// bundleName validates the name of a ClusterTrustBundle, which begins with its signer if it has one.
func (p *projection) bundleName(name string, path *field.Path) {
	if name == "" {
		p.Required(path, "must be a valid object name")
	}
	signer := ""
	if at := strings.LastIndex(name, ":"); at >= 0 {
		signer = strings.ReplaceAll(name[:at], ":", "/")
	}
	for _, wrong := range rule.TrustBundleName(signer, name, false) {
		p.Invalid(path, name, "not a valid clustertrustbundlename: "+wrong)
	}
}

// podCertificate validates a source with a key of the pod, and its certificate from a signer.
func (p *projection) podCertificate(v object.Object, path *field.Path) {
	signer := object.String(v, "signerName")
	rule.SignerName(p.Validation, signer, path.Child("signerName"))
	rule.UserAnnotations(p.Validation, object.Map(v, "userAnnotations"), path.Child("userAnnotations"))
	keys := []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}
	if key := object.String(v, "keyType"); !slices.Contains(keys, key) {
		p.Add(field.NotSupported(path.Child("keyType"), key, keys))
	}
	if seconds, ok := object.Int(v, "maxExpirationSeconds"); ok {
		shortest, longest := rule.CertificateLife(signer)
		at := path.Child("maxExpirationSeconds")
		if seconds < shortest {
			p.Invalid(at, seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", shortest))
		}
		if seconds > longest {
			p.Invalid(at, seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", longest))
		}
	}
	files := 0
	for _, name := range []string{"credentialBundlePath", "keyPath", "certificateChainPath"} {
		if file := object.String(v, name); file != "" {
			files++
			p.Invalids(path.Child(name), file, rule.Unreserved(file))
			p.take(file, file)
		}
	}
	if files == 0 {
		p.Required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
	}
}

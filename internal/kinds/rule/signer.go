package rule

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

// SignerName validates a name like example.com/signer.
func SignerName(val *Validation, name string, path *field.Path) {
	if name == "" {
		val.Required(path, "")
		return
	}
	parts := strings.Split(name, "/")
	if len(parts) != 2 {
		val.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
		return
	}
	const longest = validation.DNS1123SubdomainMaxLength
	if len(parts[0]) > longest {
		val.Add(field.TooLong(path, "", longest))
	}
	segments := func(part string, wrong func(string) []string) int {
		labels := strings.Split(part, ".")
		for _, label := range labels {
			if details := wrong(label); len(details) > 0 {
				for _, d := range details {
					val.Invalid(path, part, fmt.Sprintf("validating label %q: %s", label, d))
				}
				break
			}
		}
		return len(labels)
	}
	if segments(parts[0], validation.IsDNS1123Label) < 2 {
		val.Invalid(path, parts[0], "should be a domain with at least two segments separated by dots")
	}
	segments(parts[1], validation.IsDNS1123Subdomain)
	if most := longest + 1 + longest + validation.DNS1123LabelMaxLength + 1; len(name) > most {
		val.Add(field.TooLong(path, "", most))
	}
}

// TrustBundleName returns the errors in the name of a bundle, which must have its signer as prefix.
func TrustBundleName(signer, name string, isPrefix bool) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
		}
		return apivalidation.NameIsDNSSubdomain(name, isPrefix)
	}
	prefix := strings.ReplaceAll(signer, "/", ":") + ":"
	rest, found := strings.CutPrefix(name, prefix)
	if !found {
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, prefix)}
	}
	return apivalidation.NameIsDNSSubdomain(rest, isPrefix)
}

// UserAnnotations validates the annotations of a pod's user for its signer.
func UserAnnotations(val *Validation, given object.Object, path *field.Path) {
	size := 0
	texts := map[string]string{}
	for key, v := range given {
		text, _ := v.(string)
		texts[key] = text
		size += len(key) + len(text)
	}
	for key := range texts {
		val.Errs = append(val.Errs, validation.IsDomainPrefixedKey(path, strings.ToLower(key))...)
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		val.Add(field.TooLong(path, "", apivalidation.TotalAnnotationSizeLimitB))
	}
}

// CertificateLife returns the shortest and the longest lifetime, in seconds, that a pod can request from a signer.
func CertificateLife(signer string) (shortest, longest int64) {
	const hour = 60 * 60
	if domain, _, _ := strings.Cut(signer, "/"); strings.HasSuffix("."+domain, ".kubernetes.io") {
		return hour, 24 * hour
	}
	return hour, 91 * 24 * hour
}

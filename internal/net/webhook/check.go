package webhook

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckURL returns the errors in the URL of a webhook.
func CheckURL(text string, path *field.Path) (errs field.ErrorList) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(path, "url must be a valid URL: "+err.Error()+form)}
	}
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(path, u.Scheme, "'https' is the only allowed URL scheme"+form))
	}
	if u.Host == "" {
		errs = append(errs, field.Invalid(path, u.Host, "host must be specified"+form))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(path, u.User.String(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(path, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(path, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

// CheckService returns the errors in a reference to the service of a webhook.
func CheckService(namespace, name string, servicePath *string, port int32, path *field.Path) (errs field.ErrorList) {
	// kube-apiserver passes name and namespace in the wrong order here, so the path names the other field.
	if namespace == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if name == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	if found := utilvalidation.IsValidPortNum(int(port)); len(found) > 0 {
		errs = append(errs, field.Invalid(path.Child("port"), port, "port is not valid: "+strings.Join(found, ", ")))
	}
	if servicePath == nil || *servicePath == "/" || *servicePath == "" {
		return errs
	}
	at, text := path.Child("path"), *servicePath
	if text == "//" {
		return append(errs, field.Invalid(at, text, "segment[0] may not be empty"))
	}
	if !strings.HasPrefix(text, "/") {
		errs = append(errs, field.Invalid(at, text, "must start with a '/'"))
	}
	// As in Kubernetes the first byte is not checked again.
	for i, segment := range strings.Split(strings.TrimSuffix(text[1:], "/"), "/") {
		if segment == "" {
			errs = append(errs, field.Invalid(at, text, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, problem := range utilvalidation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(at, text, fmt.Sprintf("segment[%d]: %v", i, problem)))
		}
	}
	return errs
}

// KnownReview reports whether the server supports a version of the reviews for webhooks.
func KnownReview(version string) bool { return version == "v1" || version == "v1beta1" }

// CheckReviewVersions returns the errors in the review versions of a webhook. missing is the error text for an empty
// list; unknown accepts a list without a version that the server supports.
func CheckReviewVersions(versions []string, missing string, unknown bool, path *field.Path) (errs field.ErrorList) {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, missing)}
	}
	seen := sets.Set[string]{}
	for i, version := range versions {
		if seen.Has(version) {
			errs = append(errs, field.Invalid(path.Index(i), version, "duplicate version"))
			continue
		}
		seen.Insert(version)
		for _, problem := range utilvalidation.IsDNS1035Label(version) {
			errs = append(errs, field.Invalid(path.Index(i), version, problem))
		}
	}
	if !unknown && !slices.ContainsFunc(versions, KnownReview) {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of v1, v1beta1"))
	}
	return errs
}

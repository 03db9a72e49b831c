package apiserverinternal

import (
	"fmt"
	"slices"
	"strings"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// storageVersionKind is the kind in which the servers of a store publish the versions in which they read and write a
// resource. Package storageversion writes it, if its feature gate is on.
func storageVersionKind() rule.Kind {
	return rule.Of[apiserverinternalv1alpha1.StorageVersion](rule.Kind{
		Group: rule.Group{Name: "internal.apiserver.k8s.io", Version: "v1alpha1", Priority: 16000, Rank: 9},
		Kind:  "StorageVersion", Plural: "storageversions",
		ClusterScoped: true, Status: true, StatusOnly: true, OnDemand: true,
		Strategy: &catalog.Strategy{Cells: rule.Printed(storageVersionCells), ValidName: storageVersionName},
	})
}

func storageVersionCells(v *apiserverinternalv1alpha1.StorageVersion, e catalog.Env) []any {
	common := rule.Unset
	if v.Status.CommonEncodingVersion != nil {
		common = *v.Status.CommonEncodingVersion
	}
	servers := make([]string, len(v.Status.StorageVersions))
	for i, s := range v.Status.StorageVersions {
		servers[i] = s.APIServerID + "=" + s.EncodingVersion
	}
	version := rule.OrText(rule.FirstFew(servers, 3, ","), rule.Unset)
	return []any{v.Name, common, version, rule.Ago(v.CreationTimestamp, e)}
}

func storageVersionName(name string, _ bool) (wrong []string) {
	dot := strings.LastIndex(name, ".")
	if dot < 0 {
		return []string{"name must be in the form of <group>.<resource>"}
	}
	for _, text := range validation.IsDNS1123Subdomain(name[:dot]) {
		wrong = append(wrong, "the group segment "+text)
	}
	for _, text := range validation.IsDNS1035Label(name[dot+1:]) {
		wrong = append(wrong, "the resource segment "+text)
	}
	return wrong
}

// validateStorageVersion validates the status; there is nothing else.
func validateStorageVersion(v *apiserverinternalv1alpha1.StorageVersion) (errs field.ErrorList) {
	path := field.NewPath("status")
	seen := map[string]bool{}
	for i, s := range v.Status.StorageVersions {
		at := path.Child("storageVersions").Index(i)
		if seen[s.APIServerID] {
			errs = append(errs, field.Duplicate(at.Child("apiServerID"), s.APIServerID))
		}
		seen[s.APIServerID] = true
		errs = append(errs, validateServer(s, at)...)
	}
	if err := validateCommonVersion(v.Status, path.Child("commonEncodingVersion")); err != nil {
		errs = append(errs, err)
	}
	return append(errs, validateConditions(v.Status.Conditions, path)...)
}

// validateServer validates the entry of one server.
func validateServer(s apiserverinternalv1alpha1.ServerStorageVersion, path *field.Path) (errs field.ErrorList) {
	for _, text := range apivalidation.NameIsDNSSubdomain(s.APIServerID, false) {
		errs = append(errs, field.Invalid(path.Child("apiServerID"), s.APIServerID, text))
	}
	version := func(v string, at *field.Path) {
		if wrong := apiVersion(v); len(wrong) > 0 {
			errs = append(errs, field.Invalid(at, v, strings.Join(wrong, ",")))
		}
	}
	version(s.EncodingVersion, path.Child("encodingVersion"))
	decodable := path.Child("decodableVersions")
	for i, v := range s.DecodableVersions {
		version(v, decodable.Index(i))
	}
	if !slices.Contains(s.DecodableVersions, s.EncodingVersion) {
		errs = append(errs, field.Invalid(decodable, s.DecodableVersions,
			"decodableVersions must include encodingVersion "+s.EncodingVersion))
	}
	for i, v := range s.ServedVersions {
		at := path.Child("servedVersions").Index(i)
		version(v, at)
		if !slices.Contains(s.DecodableVersions, v) {
			errs = append(errs, field.Invalid(at, v, fmt.Sprintf(
				"individual served version : %s must be included in decodableVersions : %s", v, s.DecodableVersions)))
		}
	}
	return errs
}

// validateCommonVersion requires the common version of all servers, if there is one.
func validateCommonVersion(s apiserverinternalv1alpha1.StorageVersionStatus, path *field.Path) *field.Error {
	var common *string
	for i, server := range s.StorageVersions {
		if i == 0 {
			common = &server.EncodingVersion
		} else if *common != server.EncodingVersion {
			common = nil
			break
		}
	}
	switch version := s.CommonEncodingVersion; {
	case common == nil && version != nil:
		return field.Invalid(path, *version, "should be nil if servers do not agree on the same encoding version, or "+
			"if there is no server reporting the supported versions yet")
	case common != nil && version == nil:
		return field.Invalid(path, version, "the common encoding version is "+*common)
	case common != nil && *common != *version:
		return field.Invalid(path, *version, "the actual common encoding version is "+*common)
	}
	return nil
}

// validateConditions validates conditions, with unique types. Errors have no "conditions" in their paths.
func validateConditions(
	conditions []apiserverinternalv1alpha1.StorageVersionCondition, path *field.Path,
) (errs field.ErrorList) {
	seen := map[apiserverinternalv1alpha1.StorageVersionConditionType]int{}
	qualified := func(name string, at *field.Path) {
		for _, text := range validation.IsQualifiedName(name) {
			errs = append(errs, field.Invalid(at, name, text))
		}
	}
	for i, c := range conditions {
		at := path.Index(i)
		if before, ok := seen[c.Type]; ok {
			errs = append(errs, field.Invalid(at.Child("type"), string(c.Type), fmt.Sprintf(
				"the type of the condition is not unique, it also appears in conditions[%d]", before)))
		}
		seen[c.Type] = i
		qualified(string(c.Type), at.Child("type"))
		qualified(string(c.Status), at.Child("status"))
		if c.Reason == "" {
			errs = append(errs, field.Required(at.Child("reason"), ""))
		}
		if c.Message == "" {
			errs = append(errs, field.Required(at.Child("message"), ""))
		}
	}
	return errs
}

// apiVersion returns the errors in a version, which may have a group and a slash before it.
func apiVersion(v string) (wrong []string) {
	part := func(name, value string, check func(string) []string) {
		if value == "" {
			wrong = append(wrong, name+" part: "+validation.EmptyError())
			return
		}
		for _, text := range check(value) {
			wrong = append(wrong, name+" part: "+text)
		}
	}
	group, version, grouped := strings.Cut(v, "/")
	switch {
	case strings.Contains(version, "/"):
		return []string{"an apiVersion is " + validation.RegexError("a DNS-1035 label, which must consist of lower case "+
			"alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
			"[a-z]([-a-z0-9]*[a-z0-9])?", "my-name", "abc-123") +
			" with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"}
	case grouped:
		part("group", group, validation.IsDNS1123Subdomain)
	default:
		version = v
	}
	part("version", version, validation.IsDNS1035Label)
	return wrong
}

// validateStorageVersionUpdate validates an update of the status; without a subresource nothing can change.
func validateStorageVersionUpdate(
	v, _ *apiserverinternalv1alpha1.StorageVersion, subresource string,
) field.ErrorList {
	if subresource != "status" {
		return nil
	}
	return validateStorageVersion(v)
}

// storageVersionFunctions are the functions that storage_version.txt names.
func storageVersionFunctions() rule.Functions {
	return rule.Functions{
		"storageVersion": rule.Typed(validateStorageVersion, validateStorageVersionUpdate),
	}
}

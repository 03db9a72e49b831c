package rule

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// formats returns the formats that a rule in a kind's text may name. Each function returns the errors of a string.
func formats() map[string]func(string) []string {
	return map[string]func(string) []string{
		"label":       validation.IsDNS1123Label,
		"subdomain":   validation.IsDNS1123Subdomain,
		"underscored": validation.IsDNS1123SubdomainWithUnderscore,
		"qualified":   validation.IsQualifiedName,
		"labelValue":  validation.IsValidLabelValue,
		"portName":    validation.IsValidPortName,
		"key":         validation.IsConfigMapKey,
		"variable":    validation.IsRelaxedEnvVarName,
		"segment":     content.IsPathSegmentName,
		"namespace":   func(s string) []string { return apivalidation.ValidateNamespaceName(s, false) },
		"prefix":      func(s string) []string { return apivalidation.NameIsDNSSubdomain(s, true) },
		"relative":    Relative,
		"unreserved":  Unreserved,
		"noBacksteps": NoBacksteps,
		"absolute":    Absolute,
		"trimmed":     Trimmed,
		"domainPath":  details(func(s string) field.ErrorList { return validation.IsDomainPrefixedPath(nil, s) }),
		"initiator":   Initiator,
		"driver":      driver,
	}
}

// details makes a format from a function that returns field errors.
func details(f func(string) field.ErrorList) func(string) []string {
	return func(s string) []string {
		var out []string
		for _, e := range f(s) {
			out = append(out, e.Detail)
		}
		return out
	}
}

// Absolute is the format of paths that begin with a slash.
func Absolute(s string) []string {
	if !strings.HasPrefix(s, "/") {
		return []string{"must be an absolute path"}
	}
	return nil
}

// NoBacksteps is the format of paths without "..".
func NoBacksteps(s string) []string {
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." {
			return []string{"must not contain '..'"}
		}
	}
	return nil
}

// Relative is a path that stays below where it begins.
func Relative(s string) []string {
	var out []string
	if strings.HasPrefix(s, "/") {
		out = []string{"must be a relative path"}
	}
	return append(out, NoBacksteps(s)...)
}

// Unreserved requires a relative path without parts that are reserved for the kubelet, which begin with "..".
func Unreserved(s string) []string {
	out := Relative(s)
	if strings.HasPrefix(s, "..") && !strings.HasPrefix(s, "../") {
		out = append(out, "must not start with '..'")
	}
	return out
}

// Trimmed is the format of texts without white space at either end.
func Trimmed(s string) []string {
	if strings.TrimSpace(s) != s {
		return []string{"must not have leading or trailing whitespace"}
	}
	return nil
}

func driver(s string) []string { return validation.IsDNS1123Subdomain(strings.ToLower(s)) }

// ISCSITooLong is the error about names that make an initiator of iSCSI too long.
const ISCSITooLong = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."

var initiatorForms = map[string]*regexp.Regexp{
	"iqn": regexp.MustCompile(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
	"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
	"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
}

// Initiator validates the name of a party of iSCSI.
func Initiator(s string) []string {
	form := initiatorForms[s[:min(3, len(s))]]
	switch {
	case form == nil:
		return []string{"must be valid format starting with iqn, eui, or naa"}
	case !form.MatchString(s):
		return []string{"must be valid format"}
	}
	return nil
}

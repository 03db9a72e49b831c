package check

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// formats are those that lines of the text may name. Each returns what is wrong with a string.
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
		"relative":    relative,
		"unreserved":  unreserved,
		"noBacksteps": noBacksteps,
		"absolute":    absolute,
		"trimmed":     trimmed,
		"ip": details(func(s string) field.ErrorList {
			return validation.IsValidIPForLegacyField(nil, s, true, nil)
		}),
		"cidr": details(func(s string) field.ErrorList {
			return validation.IsValidCIDRForLegacyField(nil, s, true, nil)
		}),
		"domainPath": details(func(s string) field.ErrorList { return validation.IsDomainPrefixedPath(nil, s) }),
		"initiator":  initiator,
		"driver":     driver,
	}
}

// details makes a format of a function that returns errors of its own.
func details(f func(string) field.ErrorList) func(string) []string {
	return func(s string) []string {
		var out []string
		for _, e := range f(s) {
			out = append(out, e.Detail)
		}
		return out
	}
}

func absolute(s string) []string {
	if !strings.HasPrefix(s, "/") {
		return []string{"must be an absolute path"}
	}
	return nil
}

func noBacksteps(s string) []string {
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." {
			return []string{"must not contain '..'"}
		}
	}
	return nil
}

// relative is a path that stays below where it begins.
func relative(s string) []string {
	var out []string
	if strings.HasPrefix(s, "/") {
		out = []string{"must be a relative path"}
	}
	return append(out, noBacksteps(s)...)
}

// unreserved is a relative path of which no part can be one of the kubelet's own, which begin with "..".
func unreserved(s string) []string {
	out := relative(s)
	if strings.HasPrefix(s, "..") && !strings.HasPrefix(s, "../") {
		out = append(out, "must not start with '..'")
	}
	return out
}

func trimmed(s string) []string {
	if strings.TrimSpace(s) != s {
		return []string{"must not have leading or trailing whitespace"}
	}
	return nil
}

func driver(s string) []string { return validation.IsDNS1123Subdomain(strings.ToLower(s)) }

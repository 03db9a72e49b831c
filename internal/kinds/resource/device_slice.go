package resource

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// maybeDomainName validates "identifier" or "domain/identifier". As in Kubernetes it accepts more than one slash.
func maybeDomainName(val *rule.Validation, s string, path *field.Path) {
	parts := strings.Split(s, "/")
	switch len(parts) {
	case 1:
		identifier(val, s, path)
	case 2:
		if parts[0] == "" {
			val.Invalid(path, "", "the domain must not be empty")
		} else {
			rule.DriverName(val, rule.Value{New: parts[0], Path: path})
		}
		if parts[1] == "" {
			val.Invalid(path, "", "the name must not be empty")
		} else {
			identifier(val, parts[1], path)
		}
	}
}

// domainName validates a name that must have a domain.
func domainName(val *rule.Validation, s string, path *field.Path) {
	maybeDomainName(val, s, path)
	if !strings.Contains(s, "/") {
		val.Invalid(path, s, "a fully qualified name must be a domain and a name separated by a slash")
	}
}

func identifier(val *rule.Validation, s string, path *field.Path) {
	if len(s) > resourcev1.DeviceMaxIDLength {
		val.Add(field.TooLong(path, "", resourcev1.DeviceMaxIDLength))
	}
	val.Invalids(path, s, content.IsCIdentifier(s))
}

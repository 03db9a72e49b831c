package bowsprit

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// parseOrigins compiles what --cors-allowed-origins says. As kube-apiserver does, it refuses an expression that could
// match a part of another host's name.
func parseOrigins(patterns []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	var errs []error
	for _, pattern := range patterns {
		re, err := regexp.Compile(pattern)
		switch {
		case pattern == "":
			errs = append(errs,
				errors.New("--cors-allowed-origins has an empty value: name an origin, as in '//example.com(:|$)'"))
		case err != nil:
			errs = append(errs, fmt.Errorf("--cors-allowed-origins %q is no regular expression: %w", pattern, err))
		case !strings.Contains(pattern, "^") && !strings.Contains(pattern, "//") || !strings.Contains(pattern, "$") &&
			!strings.Contains(pattern, ":"):
			errs = append(errs,
				fmt.Errorf(
					"--cors-allowed-origins %q matches parts of other hosts' names: begin with ^ or //, and end with $ or (:|$)", pattern))
		default:
			out = append(out, re)
		}
	}
	return out, errors.Join(errs...)
}

package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// HTTP configures response headers for browsers, and the server of connections.
type HTTP struct {
	// StrictTransportSecurity are directives for browsers ("max-age=31536000", "includeSubDomains"), which every
	// response carries; without directives the header is absent.
	StrictTransportSecurity []string
	// CORSAllowedOrigins are regular expressions of the origins ("//ui\\.example\\.com(:|$)") whose programs may use
	// the API from browsers. Each must match the beginning and the end of the host.
	CORSAllowedOrigins []string
	// HTTP2Server serves connections of HTTP/2: "go" (the default), the server of golang.org/x/net/http2, or "direct",
	// which needs less CPU, above all for watches, and is new.
	HTTP2Server string
}

// The values of HTTP.HTTP2Server.
const (
	HTTP2Go     = "go"
	HTTP2Direct = "direct"
)

func (c *HTTP) setDefaults() { c.HTTP2Server = cmp.Or(c.HTTP2Server, HTTP2Go) }

func (c *HTTP) settings() []Setting {
	return []Setting{
		{
			Name:  "strict-transport-security-directives",
			Help:  "directives of the header Strict-Transport-Security, for browsers (default: no header)",
			Value: &c.StrictTransportSecurity,
		},
		{
			Name:  "cors-allowed-origins",
			Help:  `regular expressions of the origins from which programs in browsers may use the API, such as '//example.com(:|$)'`,
			Value: &c.CORSAllowedOrigins,
		},
		{
			Name: "http2-server", Only: Serve,
			Help: "server of HTTP/2 connections: go, of Go's own libraries, or direct, which needs less CPU, above all " +
				"for watches, and is new",
			Value: &c.HTTP2Server, Default: HTTP2Go,
		},
	}
}

func (c *HTTP) validate(p *problems) {
	if _, err := Origins(c.CORSAllowedOrigins); err != nil {
		*p = append(*p, err)
	}
	switch c.HTTP2Server {
	case "", HTTP2Go, HTTP2Direct:
	default:
		*p = append(*p, fmt.Errorf("--http2-server %q is unknown: use %s or %s", c.HTTP2Server, HTTP2Go, HTTP2Direct))
	}
}

// Origins compiles the expressions of --cors-allowed-origins. As kube-apiserver does, it refuses an expression
// that could match a part of another host's name.
func Origins(patterns []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	var errs []error
	for _, pattern := range patterns {
		re, err := regexp.Compile(pattern)
		switch {
		case pattern == "":
			errs = append(errs,
				errors.New("--cors-allowed-origins has an empty value: name an origin, as in '//example.com(:|$)'"))
		case err != nil:
			errs = append(errs, fmt.Errorf("--cors-allowed-origins %q is not a regular expression: %w", pattern, err))
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

package explain

import (
	"regexp"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// These expressions match the texts of refusals, and the name of the object before them. The quotes are Go's.
var (
	refusedResource = regexp.MustCompile(
		`User ("(?:[^"\\]|\\.)*") cannot (\S+) resource "([^"]*)" in API group "([^"]*)" ` +
			`(?:in the namespace "([^"]*)"|at the cluster scope)`)
	refusedPath = regexp.MustCompile(`User ("(?:[^"\\]|\\.)*") cannot (\S+) path "([^"]*)"`)
	refusedName = regexp.MustCompile(`(\S+) "([^"]+)" is forbidden: User "`)
)

// parseRefusal returns the refused request of a text, or nil.
func parseRefusal(text string) *deniedRequest {
	text = unescape.Replace(text)
	if m := refusedResource.FindStringSubmatch(text); m != nil {
		a := &authorizationv1.ResourceAttributes{Verb: m[2], Group: m[4], Namespace: m[5]}
		a.Resource, a.Subresource, _ = strings.Cut(m[3], "/")
		if n := refusedName.FindStringSubmatch(text); n != nil {
			if of, _, _ := strings.Cut(n[1], "."); of == a.Resource {
				a.Name = n[2]
			}
		}
		return &deniedRequest{user: unquote(m[1]), resource: a}
	}
	if m := refusedPath.FindStringSubmatch(text); m != nil {
		return &deniedRequest{
			user: unquote(m[1]), other: &authorizationv1.NonResourceAttributes{Verb: m[2], Path: m[3]},
		}
	}
	return nil
}

// unescape restores the characters that are escaped so that browsers do not read names as HTML.
var unescape = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

func unquote(text string) string {
	if s, err := strconv.Unquote(text); err == nil {
		return s
	}
	return strings.Trim(text, `"`)
}

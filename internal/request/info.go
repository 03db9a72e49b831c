// Package request describes the target of a request: verb, group, version, resource and name, or a non-resource path.
//
// It is the first step after the connection: package front parses each request once and hands the Info to every later
// step (authorization, discovery, the verbs). It also holds the per-request state in the context (Scope: the audit ID,
// warnings for the client), because packages below front need it.
//
// Rules: Kubernetes' URL scheme, including the deprecated /watch/ and /proxy/ prefixes, in which the second path
// segment after the version is the verb. test/oracle/request compares Parse with Kubernetes' own resolver.
//
// One goroutine creates an Info; afterwards it is read-only. A Scope may be used by several goroutines at once.
package request

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Info is the target of a request. The zero value of a field means that the request does not specify it.
type Info struct {
	// Verb is get, list, watch, create, update, patch, delete, deletecollection or proxy for a resource, or "" if the
	// HTTP method has no meaning there. For any other path it is the HTTP method in lower case.
	Verb       string
	IsResource bool
	Path       string // percent-decoded, otherwise as sent: double slashes and dots are kept

	APIPrefix   string // "api" or "apis"
	Group       string // "" is the core group
	Version     string
	Namespace   string
	Resource    string // plural
	Subresource string
	// Name is the object's name from the path, or from a field selector metadata.name=... of a list or a watch.
	Name string
	// Parts is the path from the resource on: {resource}/{name}/{subresource}/{anything}...
	Parts []string

	// FieldSelector and LabelSelector are unparsed. They are set for list, watch and deletecollection only, for
	// authorizers.
	FieldSelector, LabelSelector string

	visible  bool      // the query limits the result to objects that the caller may see
	segments [8]string // memory of Parts, so that an Info is one allocation
}

// Parse returns the target of r. It returns an error if the path has a verb prefix without a target; the Info then
// holds the parts parsed so far. It is never nil.
func Parse(r *http.Request) (*Info, error) {
	info := new(Info)
	return info, info.Parse(r)
}

// Parse is the function Parse with existing memory.
func (info *Info) Parse(r *http.Request) error {
	*info = Info{Path: r.URL.Path, Verb: lowerMethod(r.Method)}
	parts := split(info.segments[:0], r.URL.Path)
	if len(parts) < 3 {
		return nil
	}
	switch parts[0] {
	case "api":
		info.APIPrefix, parts = "api", parts[1:]
	case "apis":
		info.APIPrefix, parts = "apis", parts[1:]
		if len(parts) < 3 {
			return nil
		}
		info.Group, parts = parts[0], parts[1:]
	default:
		return nil
	}
	info.IsResource = true
	info.Version, parts = parts[0], parts[1:]

	verbInPath := parts[0] == "watch" || parts[0] == "proxy"
	if verbInPath {
		if len(parts) < 2 {
			return fmt.Errorf("unable to determine kind and namespace from url, %v", r.URL)
		}
		info.Verb, parts = parts[0], parts[1:]
	} else {
		info.Verb = verbOf(r.Method)
	}

	// namespaces/{name} and its own subresources are about the namespace; anything deeper is in the namespace.
	if parts[0] == "namespaces" && len(parts) > 1 {
		info.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	info.Parts = parts
	info.Resource = parts[0]
	if len(parts) >= 2 {
		info.Name = parts[1]
	}
	if len(parts) >= 3 && info.Verb != "proxy" {
		info.Subresource = parts[2]
	}

	info.readQuery(r.URL.RawQuery, verbInPath)
	return nil
}

// readQuery completes the verb and the selectors from the query: a get or delete without a name addresses a collection.
func (i *Info) readQuery(raw string, verbInPath bool) {
	if i.Name == "" && i.Verb == "delete" {
		i.Verb = "deletecollection"
	}
	many := i.Name == "" && i.Verb == "get"
	if many {
		i.Verb = "list"
	}
	if raw == "" {
		return
	}
	if !many && (verbInPath || i.Verb != "deletecollection") {
		return
	}
	query, _ := url.ParseQuery(raw) // ParseQuery keeps the valid parts, as url.URL.Query does
	if many {
		i.readListOptions(query)
	}
	if !verbInPath {
		i.FieldSelector = query.Get("fieldSelector")
		i.LabelSelector = query.Get("labelSelector")
	}
}

// readListOptions distinguishes a watch from a list and takes the name from the field selector. Options that cannot be
// decoded are no error here (the verb returns a 400 later), but hide the name.
func (i *Info) readListOptions(query url.Values) {
	i.visible = query.Get(visibleParameter) == "true"
	if watch := query["watch"]; len(watch) > 0 && watch[0] != "0" && !strings.EqualFold(watch[0], "false") {
		i.Verb = "watch"
	}
	raw := query.Get("fieldSelector")
	if raw == "" {
		return
	}
	var opts metav1.ListOptions
	if metav1.Convert_url_Values_To_v1_ListOptions(&query, &opts, nil) != nil {
		return
	}
	if _, err := labels.Parse(opts.LabelSelector); err != nil {
		return
	}
	selector, err := fields.ParseSelector(raw)
	if err != nil {
		return
	}
	if name, ok := selector.RequiresExactMatch("metadata.name"); ok && len(content.IsPathSegmentName(name)) == 0 {
		i.Name = name
	}
}

// LongRunning reports whether the request has no deadline and no in-flight limit, whatever resource it names.
// Subresources such as "exec" and "log" can be long-running too; that depends on the resource, so the catalog decides.
func (i *Info) LongRunning() bool {
	if i.IsResource {
		return i.Verb == "watch"
	}
	return strings.HasPrefix(i.Path, "/debug/pprof/") || i.Path == "/bowsprit/snapshot"
}

// Mutating reports whether the request counts as a write for the in-flight limits: all verbs but get, list and watch.
func (i *Info) Mutating() bool {
	return i.Verb != "get" && i.Verb != "list" && i.Verb != "watch"
}

// split appends the segments of path to dst. It ignores slashes at both ends, but keeps empty segments in between.
func split(dst []string, path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return dst
	}
	for {
		segment, rest, more := strings.Cut(path, "/")
		dst = append(dst, segment)
		if !more {
			return dst
		}
		path = rest
	}
}

func verbOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// lowerMethod is strings.ToLower without an allocation for the usual methods.
func lowerMethod(method string) string {
	switch method {
	case http.MethodGet:
		return "get"
	case http.MethodPost:
		return "post"
	case http.MethodPut:
		return "put"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return strings.ToLower(method)
}

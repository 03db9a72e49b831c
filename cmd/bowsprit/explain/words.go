package explain

import (
	"regexp"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
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

// findResource returns the resource that a word names: pods, po, pod, deployments.apps, deployments.v1.apps, each
// perhaps with a subresource. For a name that the server does not have, known is false, and the attributes have
// that name: a rule may name a resource before its definition exists. An error means that the server answers no
// discovery request.
func findResource(client discovery.DiscoveryInterface, word string) (
	a *authorizationv1.ResourceAttributes, namespaced, known bool, err error,
) {
	word, sub, _ := strings.Cut(word, "/")
	name, group, _ := strings.Cut(word, ".")
	a = &authorizationv1.ResourceAttributes{Resource: name, Group: group, Subresource: sub}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil && len(lists) == 0 { // else some groups are not available
		return nil, false, false, err
	}
	for _, l := range lists {
		of, version := groupOf(l.GroupVersion)
		for i := range l.APIResources {
			r := &l.APIResources[i]
			if strings.Contains(r.Name, "/") || !means(r, name) ||
				group != "" && group != of && group != version+"."+of {
				continue
			}
			a.Resource, a.Group = r.Name, of
			return a, r.Namespaced, true, nil
		}
	}
	return a, true, false, nil
}

func groupOf(groupVersion string) (group, version string) {
	group, version, ok := strings.Cut(groupVersion, "/")
	if !ok {
		return "", group
	}
	return group, version
}

func means(r *metav1.APIResource, word string) bool {
	word = strings.ToLower(word)
	if r.Name == word || r.SingularName == word || strings.ToLower(r.Kind) == word {
		return true
	}
	for _, short := range r.ShortNames {
		if short == word {
			return true
		}
	}
	return false
}

package pod

import (
	"regexp"
	"strings"
)

var imagePath = regexp.MustCompile(
	`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)

var imageDomain = regexp.MustCompile(
	`^(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(?::[0-9]+)?$|^\[[a-fA-F0-9:]+\](?::[0-9]+)?$`)

var imageTag = regexp.MustCompile(`^[\w][\w.-]{0,127}$`)

var imageDigest = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)

var imageID = regexp.MustCompile(`^[a-f0-9]{64}$`)

// pullPolicy returns the default pull policy: Always for the tag "latest", or for neither tag nor digest.
func pullPolicy(image string) string {
	if tag, ok := tagOf(image); ok && tag == "latest" {
		return "Always"
	}
	return "IfNotPresent"
}

// tagOf returns the tag of an image reference, "latest" if it has no digest either. false means that it is not a
// reference.
func tagOf(image string) (tag string, ok bool) {
	if imageID.MatchString(image) {
		return "", false
	}
	name, digest, digested := strings.Cut(image, "@")
	if digested && !imageDigest.MatchString(digest) {
		return "", false
	}
	tagged := false
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag, tagged = name[:i], name[i+1:], true
	}
	if tagged && !imageTag.MatchString(tag) {
		return "", false
	}
	if domain, rest, ok := strings.Cut(name, "/"); ok &&
		(strings.ContainsAny(domain, ".:") || domain == "localhost" || strings.ToLower(domain) != domain) {
		if !imageDomain.MatchString(domain) {
			return "", false
		}
		name = rest
	}
	if !imagePath.MatchString(name) || len(name) > 255 {
		return "", false
	}
	if !tagged && !digested {
		return "latest", true
	}
	return tag, true
}

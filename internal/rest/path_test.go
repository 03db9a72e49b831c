package rest_test

import (
	"net/http"
	"testing"
)

// TestPaths checks that paths below a subresource, and paths without any method, are not found. The responses come from
// a running kube-apiserver 1.36.3.
func TestPaths(t *testing.T) {
	t.Parallel()
	s := start(t)
	const namespace = "/api/v1/namespaces/default"
	send(t, s, http.MethodPost, namespace+"/pods",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, nil)
	for _, path := range []string{
		namespace + "/pods/p/status/y", namespace + "/pods/p/log/y", namespace + "/pods/p/eviction/y",
		namespace + "/pods/p/status/y/z", namespace + "/pods/p/nope", namespace + "/status/y",
		"/apis/apps/v1/namespaces/default/deployments/d/scale/y", "/api/v1/bindings", "/api/v1/nodes/n/nope",
		"/apis/certificates.k8s.io/v1/certificatesigningrequests/c/approval/y",
		"/apis/authorization.k8s.io/v1/subjectaccessreviews/x",
		"/apis/authorization.k8s.io/v1/localsubjectaccessreviews",
	} {
		for _, method := range []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		} {
			code, answer := perform(t, s, method, path, "{}")
			if code != http.StatusNotFound ||
				method != http.MethodHead && answer["message"] != "the server could not find the requested resource" {
				t.Errorf("%s %s: %d %v", method, path, code, answer["message"])
			}
		}
	}
	for _, path := range []string{namespace + "/pods/p/status", namespace + "/pods/p/status/", namespace + "/status"} {
		if code, answer := perform(t, s, http.MethodGet, path, ""); code != http.StatusOK {
			t.Errorf("GET %s: %d %v", path, code, answer["message"])
		}
	}
}

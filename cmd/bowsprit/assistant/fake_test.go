package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// fake is a server with a ConfigMap, a Secret, an event, and a custom kind with a sensitive field. Every text that a
// user can write contains text.
type fake struct {
	text string

	mu struct {
		sync.Mutex
		user, cluster string            // as the server reports them
		objects       map[string]object // by their paths
		version       int
		writes        []string
		// beforeWrite is called before each write that is no dry run, and may change objects.
		beforeWrite func()
	}
}

type object = map[string]any

const (
	configMapPath = "/api/v1/namespaces/default/configmaps/web"
	secretPath    = "/api/v1/namespaces/default/secrets/web"
	databasePath  = "/apis/example.com/v1/namespaces/default/databases/web"
	password      = "swordfish"
)

// newFake returns tools for a fake server, and a session of the SDK's client.
func newFake(t testing.TB, text string, options Options) (*fake, *Tools, *mcp.ClientSession) {
	t.Helper()
	f := &fake{text: text}
	f.mu.user, f.mu.cluster, f.mu.objects = "alice", "one", map[string]object{}
	meta := func() object {
		return object{"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": "1",
			"annotations":   object{"note": text, "kubectl.kubernetes.io/last-applied-configuration": password},
			"managedFields": []any{object{"manager": "m"}}}
	}
	f.mu.objects[configMapPath] = object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(),
		"data": object{"k": text}}
	f.mu.objects[secretPath] = object{"apiVersion": "v1", "kind": "Secret", "metadata": meta(),
		"data": object{"p": password}}
	f.mu.objects[databasePath] = object{"apiVersion": "example.com/v1", "kind": "Database", "metadata": meta(),
		"spec": object{"host": text, "password": password}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	tools, err := New(&connect.Server{Config: &rest.Config{Host: server.URL}, Namespace: "default"}, options)
	if err != nil {
		t.Fatal(err)
	}
	return f, tools, session(t, tools)
}

// session connects the SDK's client with tools.
func session(t testing.TB, tools *Tools) *mcp.ClientSession {
	t.Helper()
	to, from := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	server, err := tools.Server().Connect(ctx, from, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Wait()
		cancel()
	})
	return client
}

// call calls a tool. failed reports whether the answer is an error.
func call(t testing.TB, s *mcp.ClientSession, tool string, args object) (text string, failed bool) {
	t.Helper()
	result, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if len(result.Content) != 1 || result.StructuredContent != nil {
		t.Fatalf("%s: %v", tool, result)
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := f.get(r)
	switch r.Method {
	case http.MethodPost:
		answer = f.review(r.URL.Path)
	case http.MethodPatch, http.MethodDelete:
		answer = f.write(r)
	}
	if answer == nil {
		answer = f.status(http.StatusNotFound, "NotFound")
	}
	if answer["kind"] == "Status" {
		w.WriteHeader(answer["code"].(int))
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *fake) status(code int, reason string) object {
	return object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
		"message": reason + " " + f.text}
}

// review answers reviews of the user and of access.
func (f *fake) review(path string) object {
	if strings.HasSuffix(path, "/selfsubjectreviews") {
		return object{"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
			"status": object{"userInfo": object{"username": f.mu.user}}}
	}
	return object{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
		"status": object{"allowed": false, "reason": f.text, "explanation": object{"summary": f.text}}}
}

func (f *fake) get(r *http.Request) object {
	if found := f.discovery(r.URL.Path); found != nil {
		return found
	}
	switch path := r.URL.Path; path {
	case "/api/v1/namespaces/kube-system":
		return object{"kind": "Namespace", "apiVersion": "v1",
			"metadata": object{"name": "kube-system", "uid": f.mu.cluster}}
	case "/api/v1/namespaces/default/events":
		return object{"kind": "EventList", "apiVersion": "v1", "items": []any{object{
			"metadata": object{"name": "e", "namespace": "default"}, "reason": f.text, "message": f.text,
			"type": f.text, "involvedObject": object{"kind": f.text, "name": f.text}}}}
	case "/api/v1/namespaces/default/configmaps", "/apis/example.com/v1/namespaces/default/databases":
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
			return object{"kind": "PartialObjectMetadataList",
				"items": []any{object{"metadata": object{"name": f.text}}}}
		}
		return object{"kind": "Table", "columnDefinitions": []any{object{"name": f.text}, object{"name": "b"}},
			"rows": []any{object{"cells": []any{f.text, password}, "object": object{"metadata": object{"name": "x"}}}}}
	default:
		return f.mu.objects[path]
	}
}

func (f *fake) discovery(path string) object {
	resource := func(name, kind string) object {
		return object{"name": name, "singularName": strings.ToLower(kind), "kind": kind, "namespaced": true,
			"verbs": []any{"list", "get", "patch", "delete"}}
	}
	switch path {
	case "/version":
		return object{"gitVersion": "v1"}
	case "/api":
		return object{"kind": "APIVersions", "versions": []any{"v1"}}
	case "/apis":
		version := object{"groupVersion": "example.com/v1", "version": "v1"}
		return object{"kind": "APIGroupList", "groups": []any{object{"name": "example.com", "versions": []any{version},
			"preferredVersion": version}}}
	case "/api/v1":
		return object{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
			resource("configmaps", "ConfigMap"), resource("secrets", "Secret")}}
	case "/apis/example.com/v1":
		return object{"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": []any{
			resource("databases", "Database"), resource("ghosts", "Ghost"), resource("hostiles", "H"+f.text)}}
	case "/openapi/v3":
		return object{"paths": object{"apis/example.com/v1": object{"serverRelativeURL": "/openapi/v3/apis/example.com/v1"}}}
	case "/openapi/v3/apis/example.com/v1":
		return object{"openapi": "3.0.0", "components": object{"schemas": object{"d": object{
			"description": f.text, "type": "object", "x-kubernetes-group-version-kind": []any{object{"group": "example.com",
				"version": "v1", "kind": "Database"}},
			"properties": object{"spec": object{"type": "object", "properties": object{
				"host":     object{"type": "string", "description": f.text},
				"password": object{"type": "string", "x-kubernetes-sensitive-data": true}}}}}}},
			"paths": object{"/apis/example.com/v1/databases": object{"get": object{"x-kubernetes-group-version-kind": object{
				"group": "example.com", "version": "v1", "kind": "Database"}}}}}
	}
	return nil
}

// write applies or deletes an object, if its precondition holds.
func (f *fake) write(r *http.Request) object {
	dryRun := strings.Contains(r.URL.RawQuery, "dryRun=All")
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return f.status(http.StatusBadRequest, "BadRequest")
	}
	if r.Method == http.MethodDelete && strings.Contains(string(data), `"dryRun":["All"]`) {
		dryRun = true
	}
	if !dryRun && f.mu.beforeWrite != nil {
		f.mu.beforeWrite()
	}
	var body object
	if json.Unmarshal(data, &body) != nil {
		return f.status(http.StatusBadRequest, "BadRequest")
	}
	path := r.URL.Path
	expected, _ := body["metadata"].(object)
	if r.Method == http.MethodDelete {
		expected, _ = body["preconditions"].(object)
	}
	before := f.mu.objects[path]
	if version := expected["resourceVersion"]; version != nil && (before == nil ||
		version != before["metadata"].(object)["resourceVersion"]) {
		return f.status(http.StatusConflict, "Conflict")
	}
	if strings.HasSuffix(path, "/owned") && !strings.Contains(r.URL.RawQuery, "force=true") {
		status := f.status(http.StatusConflict, "Conflict")
		status["details"] = object{"causes": []any{object{"reason": "FieldManagerConflict", "message": f.text}}}
		return status
	}
	if !dryRun {
		f.mu.writes = append(f.mu.writes, r.Method+" "+path)
	}
	if r.Method == http.MethodDelete {
		if !dryRun {
			delete(f.mu.objects, path)
		}
		return object{"kind": "Status", "apiVersion": "v1", "status": "Success", "code": http.StatusOK}
	}
	f.mu.version++
	expected["uid"], expected["resourceVersion"] = "u1", fmt.Sprint("v", f.mu.version)
	if !dryRun {
		f.mu.objects[path] = body
	}
	return body
}

// touch changes an object.
func (f *fake) touch(path string, change func(object)) {
	o := f.mu.objects[path]
	change(o)
	f.mu.version++
	o["metadata"].(object)["resourceVersion"] = fmt.Sprint("v", f.mu.version)
}

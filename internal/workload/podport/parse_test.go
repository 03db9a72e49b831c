package podport

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "",
		"[{port: 80}]":                           "",
		"[{port: http, local: 9443}]":            "",
		`[{"port":"80","responses":[{}]}]`:       "",
		"{port: 80}":                             "is no list of ports with port, local and responses",
		"[{port: 80, command: [sh]}]":            `unknown field "command"`,
		"[{port: 80, port: 81}]":                 "already set in map",
		"[{}]":                                   `entry 0: port "0" is neither a number from 1 to 65535 nor the name`,
		"[{port: 70000}]":                        `port "70000" is neither`,
		`[{port: ""}]`:                           `port "" is neither`,
		"[{port: 1, local: -1}]":                 "local -1 is not a number from 1 to 65535",
		"[{port: 1, local: 65536}]":              "local 65536 is not a number",
		"[{port: 1, local: /etc/passwd}]":        "cannot unmarshal string",
		"[{port: 1, local: 2, responses: [{}]}]": "port 1 has both local and responses",
		"[{port: 1, responses: [{status: 99}]}]": "status 99 is not between 200 and 599",
		"[{port: 1, responses: [{path: a}]}]":    `path "a" does not begin with /`,
		`[{port: 1, responses: [{contentType: "a\nb: c"}]}]`:           "has a line break",
		"[" + strings.Repeat("{port: 1},", 101) + "]":                  "has 101 ports, more than 100",
		"[{port: 1, responses: [" + strings.Repeat("{},", 101) + "]}]": "has 101 responses, more than 100",
	} {
		_, err := parse(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	all, err := parse(`
- port: 80
  responses:
  - {method: POST, path: /jobs, status: 201}
  - {path: /jobs/*, status: 202}
  - {path: /api/..., status: 203}
  - {path: /, status: 204}
- port: 81
`)
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]int{
		"POST /jobs": 201, "post /jobs": 201, "GET /jobs": 0, "GET /jobs/a": 202, "GET /jobs/": 202, "GET /jobs/a/b": 0,
		"GET /api": 203, "GET /api/": 203, "GET /api/a/b": 203, "GET /apis": 0, "GET /": 204,
	} {
		method, path, _ := strings.Cut(request, " ")
		got := 0
		if r := all[0].find(method, path); r != nil {
			got = r.Status
		}
		if got != want {
			t.Errorf("%s: %d, want %d", request, got, want)
		}
	}
	if r := all[1].find(http.MethodGet, "/any"); r == nil || r.Status != 0 || r.Body != "" {
		t.Errorf("a port without responses: %+v", r)
	}
}

func TestIs(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}},
		{Ports: []corev1.ContainerPort{{Name: "admin", ContainerPort: 9090}}},
	}}}
	for text, want := range map[string]bool{
		"8080": true, `"8080"`: true, "http": true, "admin": false, "8081": false, "other": false,
	} {
		all, err := parse(fmt.Sprintf("[{port: %s}]", text))
		if err != nil {
			t.Fatal(err)
		}
		if got := all[0].is(pod, 8080); got != want {
			t.Errorf("%s is port 8080: %v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[{port: 80, responses: [{path: /a/..., body: b}]}]", "/a/b")
	f.Add("[{port: http, local: 1}]", "/")
	f.Fuzz(func(t *testing.T, text, path string) {
		all, err := parse(text)
		if err != nil {
			return
		}
		for i := range all {
			if p := &all[i]; p.Local != 0 && !isPort(p.Local) {
				t.Errorf("local port %d of %q", p.Local, text)
			}
			all[i].find(http.MethodGet, path)
		}
	})
}

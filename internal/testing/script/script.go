// Package script sends requests from a text file and compares the responses with it.
//
// A script is a list of exchanges with one server, in a namespace of its own, named after the file. An exchange is an
// HTTP request (a line, headers, an empty line, a body), a line with the expected status, expected headers, an empty
// line and the expected body; a line of three dashes ends it:
//
//	# the subject
//	POST /api/v1/namespaces/$NS/configmaps
//
//	{"metadata":{"name":"one"},"data":{"a":"b"}}
//	=> 201
//	Content-Type: application/json
//
//	{"kind":"ConfigMap","metadata":{"name":"one","uid":"$UID","...":""},"...":""}
//	---
//
// A body is compared as JSON: an unexpected field is a difference, unless the object has the field "...". The string
// "$any" is any value that is not null. Any other string of a dollar and capital letters is a variable: its first match
// sets the value that it stands for from then on, also in requests. A watch answers with several documents, one after
// another; "..." as the last one lets others follow. A body that does not begin with { or [ is compared as text, in
// which "$any" skips the rest of a line; one that begins with an exclamation mark is text that the response must not
// contain. Several statuses may be right: "=> 403 404".
//
// Requests are the administrator's. The header "As" selects another user: it is the bearer token of the request, which
// is then sent without a client certificate; "anonymous" sends none.
package script

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Run runs the scripts that match a pattern of files against a server, each as a parallel subtest. config has the
// administrator's credentials.
func Run(t *testing.T, pattern string, config *rest.Config) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	admin, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	others, err := rest.HTTPClientFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			exchanges, err := parse(string(text))
			if err != nil {
				t.Fatalf("%s:%v", file, err)
			}
			r := &runner{
				T: t, file: file, admin: admin, others: others, url: config.Host, vars: map[string]string{"$NS": name},
			}
			r.namespace(name)
			for _, e := range exchanges {
				r.run(e)
			}
		})
	}
}

// runner runs one script.
type runner struct {
	*testing.T
	file   string
	admin  *http.Client
	others *http.Client // without the administrator's credentials
	url    string
	vars   map[string]string
}

func (r *runner) namespace(name string) {
	r.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":%q}}`, name)
	code, _, answer := r.send(exchange{method: "POST", target: "/api/v1/namespaces", body: body, header: http.Header{}})
	if code != "201" {
		r.Fatalf("namespace %s: %s %s", name, code, answer)
	}
}

func (r *runner) run(e exchange) {
	r.Helper()
	code, header, answer := r.send(e)
	where := fmt.Sprintf("%s:%d: %s %s", r.file, e.line, e.method, e.target)
	r.Logf("%s\n%s\n%s", where, code, answer)
	if !slices.Contains(strings.Fields(e.code), code) {
		r.Fatalf("%s: status %s, want %s: %s", where, code, e.code, answer)
	}
	for name, values := range e.wantedHeader {
		for _, want := range values {
			if want = r.expand(want); !slices.Contains(header.Values(name), want) {
				r.Errorf("%s: %s is %q, want %q", where, name, header.Values(name), want)
			}
		}
	}
	if e.wantedBody == "" {
		return
	}
	if secret, ok := strings.CutPrefix(e.wantedBody, "!"); ok {
		if strings.Contains(answer, r.expand(secret)) {
			r.Errorf("%s: %q is in %s", where, secret, answer)
		}
		return
	}
	if e.wantedBody[0] != '{' && e.wantedBody[0] != '[' {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(r.expand(e.wantedBody)), `\$any`, ".*")
		if !regexp.MustCompile("^" + pattern + `\n?$`).MatchString(answer) {
			r.Errorf("%s:\n%s\nwant\n%s", where, answer, e.wantedBody)
		}
		return
	}
	got, err := documents(answer)
	if err != nil {
		r.Fatalf("%s: %v in %s", where, err, answer)
	}
	want, err := documents(e.wantedBody)
	if err != nil {
		r.Fatalf("%s: the expected body: %v", where, err)
	}
	if last := len(want) - 1; want[last] == "..." && len(got) >= last {
		got, want = got[:last], want[:last]
	}
	if len(got) != len(want) {
		r.Fatalf("%s: %d documents, want %d: %s", where, len(got), len(want), answer)
	}
	for i := range want {
		if diff := r.compare("", got[i], want[i]); diff != "" {
			r.Fatalf("%s: %s in %s", where, diff, answer)
		}
	}
}

// send sends a request and returns the status, the headers and the body of the response.
func (r *runner) send(e exchange) (code string, header http.Header, body string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, e.method, r.url+r.expand(e.target),
		strings.NewReader(r.expand(e.body)))
	if err != nil {
		r.Fatal(err)
	}
	client := r.admin
	for name, values := range e.header {
		request.Header[name] = values
	}
	if as := r.expand(e.header.Get("As")); as != "" {
		client = r.others
		request.Header.Del("As")
		if as != "anonymous" {
			request.Header.Set("Authorization", "Bearer "+as)
		}
	}
	if e.body != "" && e.header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if e.header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "wire")
	}
	answer, err := client.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return fmt.Sprint(answer.StatusCode), answer.Header, string(raw)
}

var variable = regexp.MustCompile(`\$[A-Z]+[0-9]*`)

// expand replaces the variables that have a value.
func (r *runner) expand(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := r.vars[name]; ok {
			return value
		}
		return name
	})
}

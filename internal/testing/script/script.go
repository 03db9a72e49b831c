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
// The header "Until" with any value repeats the request until the response fits, for up to a minute. A test may add
// commands: a line such as "CLOCK 30s" with the name of one in place of the method calls it, with the rest of the line
// and the body. It answers with the status "ok" and a body.
//
// Requests are the administrator's. The header "As" selects another user: it is the bearer token of the request, which
// is then sent without a client certificate; "anonymous" sends none.
package script

import (
	"context"
	"fmt"
	"io"
	"maps"
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

// Commands are the commands of a test by name. A command returns the body of its response.
type Commands map[string]func(t *testing.T, line, body string) string

// Run runs the scripts that match a pattern of files against a server, each as a parallel subtest. config has the
// administrator's credentials.
func Run(t *testing.T, pattern string, config *rest.Config) {
	t.Helper()
	RunWith(t, pattern, config, nil)
}

// RunWith is Run with commands.
func RunWith(t *testing.T, pattern string, config *rest.Config, commands Commands) {
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
				commands: commands,
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

	commands Commands
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
	where := fmt.Sprintf("%s:%d: %s %s", r.file, e.line, e.method, e.target)
	repeated := e.header.Get("Until") != ""
	e.header.Del("Until")
	limit, again := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer again.Stop()
	for {
		vars := maps.Clone(r.vars)
		code, header, answer := r.send(e)
		diff := r.difference(e, code, header, answer)
		if diff == "" {
			r.Logf("%s\n%s\n%s", where, code, answer)
			return
		}
		if !repeated {
			r.Fatalf("%s: %s: %s", where, diff, answer)
		}
		r.vars = vars
		select {
		case <-again.C:
		case <-limit:
			r.Fatalf("%s: still %s: %s", where, diff, answer)
		}
	}
}

// difference returns the difference of a response from the expected one, "" if there is none.
func (r *runner) difference(e exchange, code string, header http.Header, answer string) string {
	if !slices.Contains(strings.Fields(e.code), code) {
		return fmt.Sprintf("status %s, want %s", code, e.code)
	}
	for name, values := range e.wantedHeader {
		for _, want := range values {
			if want = r.expand(want); !slices.Contains(header.Values(name), want) {
				return fmt.Sprintf("%s is %q, want %q", name, header.Values(name), want)
			}
		}
	}
	if e.wantedBody == "" {
		return ""
	}
	if secret, ok := strings.CutPrefix(e.wantedBody, "!"); ok {
		if strings.Contains(answer, r.expand(secret)) {
			return fmt.Sprintf("%q is in the response", secret)
		}
		return ""
	}
	if e.wantedBody[0] != '{' && e.wantedBody[0] != '[' {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(r.expand(e.wantedBody)), `\$any`, ".*")
		if !regexp.MustCompile("^" + pattern + `\n?$`).MatchString(answer) {
			return fmt.Sprintf("the response differs from\n%s\n", e.wantedBody)
		}
		return ""
	}
	return r.differenceOfDocuments(e, answer)
}

// differenceOfDocuments compares the JSON documents of a response with the expected ones.
func (r *runner) differenceOfDocuments(e exchange, answer string) string {
	got, err := documents(answer)
	if err != nil {
		return err.Error()
	}
	want, err := documents(e.wantedBody)
	if err != nil {
		r.Fatalf("%s:%d: the expected body: %v", r.file, e.line, err)
	}
	if last := len(want) - 1; want[last] == "..." && len(got) >= last {
		got, want = got[:last], want[:last]
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d documents, want %d", len(got), len(want))
	}
	for i := range want {
		if diff := r.compare("", got[i], want[i]); diff != "" {
			return diff
		}
	}
	return ""
}

// send sends a request and returns the status, the headers and the body of the response.
func (r *runner) send(e exchange) (code string, header http.Header, body string) {
	r.Helper()
	if command := r.commands[e.method]; command != nil {
		return "ok", http.Header{}, command(r.T, r.expand(e.target), r.expand(e.body))
	}
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

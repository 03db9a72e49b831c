package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/testserver"
)

// exchange is one request and what is expected of its answer.
type exchange struct {
	line                 int
	method, target, body string
	header               http.Header
	code, wantedBody     string
	wantedHeader         http.Header
}

// TestScripts runs all scripts against one server.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	server := testserver.Start(t)
	client, err := rest.HTTPClientFor(server.RESTConfig())
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
			script, err := parse(string(text))
			if err != nil {
				t.Fatalf("%s:%v", file, err)
			}
			r := &runner{T: t, file: file, client: client, url: server.URL(), vars: map[string]string{"$NS": name}}
			r.namespace(name)
			for _, e := range script {
				r.run(e)
			}
		})
	}
}

// parse reads a script. The error begins with the number of a line.
func parse(text string) ([]exchange, error) {
	var out []exchange
	line := 1
	for block := range strings.SplitSeq(text, "\n---\n") {
		at := line
		line += strings.Count(block, "\n") + 2
		for strings.HasPrefix(block, "#") || strings.HasPrefix(block, "\n") {
			_, block, _ = strings.Cut(block, "\n")
			at++
		}
		if strings.TrimSpace(block) == "" {
			continue
		}
		request, answer, ok := strings.Cut(block, "\n=> ")
		if !ok {
			return nil, fmt.Errorf("%d: no line with the expected status (=> 200)", at)
		}
		e := exchange{line: at}
		var first string
		first, e.header, e.body = split(request)
		if e.method, e.target, ok = strings.Cut(first, " "); !ok {
			return nil, fmt.Errorf("%d: %q is no METHOD and path", at, first)
		}
		first, e.wantedHeader, e.wantedBody = split(answer)
		e.code, _, _ = strings.Cut(first, " ")
		out = append(out, e)
	}
	return out, nil
}

// split returns the first line of a message, its headers and its body.
func split(message string) (first string, header http.Header, body string) {
	head, body, _ := strings.Cut(message+"\n", "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	header = http.Header{}
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		header.Add(name, strings.TrimSpace(value))
	}
	return lines[0], header, strings.TrimSpace(body)
}

// runner runs one script.
type runner struct {
	*testing.T
	file   string
	client *http.Client
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
	if code != e.code {
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

// send sends a request and returns the status, the headers and the body of the answer.
func (r *runner) send(e exchange) (code string, header http.Header, body string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, e.method, r.url+r.expand(e.target),
		strings.NewReader(r.expand(e.body)))
	if err != nil {
		r.Fatal(err)
	}
	for name, values := range e.header {
		request.Header[name] = values
	}
	if e.body != "" && e.header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if e.header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "wire")
	}
	answer, err := r.client.Do(request)
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

func documents(text string) (out []any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for {
		var v any
		switch err := d.Decode(&v); err {
		case nil:
			out = append(out, v)
		case io.EOF:
			return out, nil
		default:
			return nil, err
		}
	}
}

// compare returns where got differs from want, "" if it does not.
func (r *runner) compare(path string, got, want any) string {
	switch want := want.(type) {
	case string:
		switch {
		case want == "$any":
			if got == nil {
				return path + " is missing or null"
			}
			return ""
		case variable.FindString(want) == want && r.vars[want] == "":
			r.vars[want] = fmt.Sprint(got)
			return ""
		case got != r.expand(want):
			return fmt.Sprintf("%s is %q, want %q", path, got, r.expand(want))
		}
		return ""
	case map[string]any:
		return r.compareObjects(path, got, want)
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
		for i := range want {
			if diff := r.compare(fmt.Sprintf("%s[%d]", path, i), list[i], want[i]); diff != "" {
				return diff
			}
		}
		return ""
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("%s is %v, want %v", path, got, want)
	}
	return ""
}

func (r *runner) compareObjects(path string, got any, want map[string]any) string {
	obj, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is %v, want an object", path, got)
	}
	_, open := want["..."]
	for name := range obj {
		if _, expected := want[name]; !expected && !open {
			return fmt.Sprintf("%s.%s is there", path, name)
		}
	}
	for name, v := range want {
		if name == "..." {
			continue
		}
		if _, there := obj[name]; !there {
			return fmt.Sprintf("%s.%s is missing", path, name)
		}
		if diff := r.compare(path+"."+name, obj[name], v); diff != "" {
			return diff
		}
	}
	return ""
}

// TestParse reads a script, and one that is none.
func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse("# about\nPUT /x?y\nA: b\n\n{}\n=> 200\nC: d\n\n{\"e\":1}\n---\n\nGET /z\n=> 404\n---\n")
	if err != nil || len(got) != 2 || got[0].line != 2 || got[1].line != 12 {
		t.Fatalf("%+v, %v", got, err)
	}
	if e := got[0]; e.method != "PUT" || e.target != "/x?y" || e.header.Get("A") != "b" || e.body != "{}" ||
		e.code != "200" ||
		e.wantedHeader.Get("C") != "d" || e.wantedBody != `{"e":1}` {
		t.Errorf("%+v", e)
	}
	if _, err := parse("GET /x\n"); err == nil {
		t.Error("a request without an answer was accepted")
	}
}

// TestCompare tells apart what a script does and does not allow.
func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		got, want, diff string
	}{
		{`{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1}`, ""},
		{`{"a":1,"b":2}`, `{"a":1}`, ".b is there"},
		{`{"a":1,"b":2}`, `{"a":1,"...":""}`, ""},
		{`{"a":1}`, `{"a":1,"b":2,"...":""}`, ".b is missing"},
		{`{"a":null}`, `{"a":"$any"}`, ".a is missing or null"},
		{`{"a":"x","b":"x"}`, `[]`, " is map[a:x b:x], want []"},
		{`["x","x"]`, `["$V","$V"]`, ""},
		{`["x","y"]`, `["$V","$V"]`, `[1] is "y", want "x"`},
		{`["x","is x"]`, `["$V","is $V"]`, ""},
		{`{"a":1}`, `{"a":2}`, ".a is 1, want 2"},
	} {
		got, err := documents(c.got)
		if err != nil {
			t.Fatal(err)
		}
		want, err := documents(c.want)
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{T: t, vars: map[string]string{}}
		if diff := r.compare("", got[0], want[0]); diff != c.diff {
			t.Errorf("%s against %s: %q, want %q", c.got, c.want, diff, c.diff)
		}
	}
}

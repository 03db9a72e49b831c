package badinput

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/test/oracle/apiextensions"
)

const testdata = "../../e2e/testdata/"

// request is an entry of the list; test/e2e/bad_input_test.go describes the fields.
type request struct {
	Name, Method, Path, ContentType, Body string
	Headers                               map[string]string
	Pad, Truncated                        int
	answer
	Upstream *answer
}

type answer struct {
	Code    int
	Reason  string
	Message string
}

// elsewhere are requests that this server does not answer: kube-apiserver adds the admission and the filters.
var elsewhere = []string{"missing namespace", "apply into a missing namespace", "unknown path"}

func TestBadInput(t *testing.T) {
	t.Parallel()
	config := apiextensions.Start(t).Config
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range read(t, "bad_input_setup.yaml") {
		if !custom(r) {
			continue
		}
		got := send(t, client, config.Host, r)
		for got.Code == http.StatusNotFound { // a new kind takes a while
			got = send(t, client, config.Host, r)
		}
		if got.Code != http.StatusCreated {
			t.Fatalf("%s: %v", r.Path, got)
		}
	}
	compared := 0
	for _, r := range read(t, "bad_input.yaml") {
		if !custom(r) || r.Truncated > 0 || slices.Contains(elsewhere, r.Name) || r.Headers["Authorization"] != "" ||
			r.Headers["Impersonate-User"] != "" {
			continue
		}
		want := r.answer
		if r.Upstream != nil {
			want = *r.Upstream
		}
		if want.Code == 0 {
			continue // it breaks the connection
		}
		compared++
		t.Run(r.Name, func(t *testing.T) {
			got := send(t, client, config.Host, r)
			if got.Code < 300 {
				got.Message = ""
			}
			got.Message, want.Message = steady(got.Message), steady(want.Message)
			if got != want {
				t.Errorf("upstream  %v\nthe list  %v", got, want)
			}
		})
	}
	t.Logf("%d requests compared", compared)
	if compared < 150 {
		t.Error("too few")
	}
}

// custom reports whether a request is about custom resources or their definitions.
func custom(r request) bool {
	return strings.HasPrefix(r.Path, "/apis/stable.example.com/") ||
		strings.HasPrefix(r.Path, "/apis/apiextensions.k8s.io/")
}

func read(t *testing.T, file string) (requests []request) {
	t.Helper()
	content, err := os.ReadFile(testdata + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &requests); err != nil {
		t.Fatal(err)
	}
	return requests
}

func send(t *testing.T, client *http.Client, host string, r request) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.Method, host+r.Path,
		strings.NewReader(r.Body+strings.Repeat(" ", r.Pad)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "Go-http-client/2.0")
	switch {
	case r.ContentType == "" && r.Body != "":
		req.Header.Set("Content-Type", "application/json")
	case r.ContentType != "" && r.ContentType != "none":
		req.Header.Set("Content-Type", r.ContentType)
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	response, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	if json.Unmarshal(content, &status) == nil && status.Kind == "Status" {
		return answer{response.StatusCode, string(status.Reason), status.Message}
	}
	return answer{Code: response.StatusCode, Message: string(content)}
}

// changing are the varying parts of messages, and their replacements in the list.
var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`(resourceVersion\\?"?: ?\\?")\d+`), "${1}N"},
	{regexp.MustCompile(`(ResourceVersion in record \()\d+`), "${1}N"},
	{regexp.MustCompile(`"Bad_\w{5}"`), `"Bad_XXXXX"`},
	// This server stores keys under another prefix and registers its types in another line of code.
	{regexp.MustCompile(`Key: /registry(/[a-z.]+)?/stable`), "Key: /registry/stable"},
	{regexp.MustCompile(`in scheme "[^"]+"`), `in scheme "X"`},
}

// steady makes two messages of one server comparable. The order of errors in a list varies.
func steady(message string) string {
	for _, c := range changing {
		message = c.pattern.ReplaceAllString(message, c.by)
	}
	before, list, ok := strings.Cut(message, " is invalid: [")
	list, closed := strings.CutSuffix(list, "]")
	if !ok || !closed {
		return message
	}
	errs := strings.Split(list, ", ")
	slices.Sort(errs)
	return before + " is invalid: [" + strings.Join(errs, ", ") + "]"
}

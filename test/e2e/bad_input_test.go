package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// badInput is a wrong or nearly wrong request, with kube-apiserver's response.
type badInput struct {
	Name   string `yaml:"name"`
	Method string `yaml:"method"`
	Path   string `yaml:"path"` // below the server's root, with the query
	// ContentType is "application/json" if empty and there is a body; "none" means no header.
	ContentType string `yaml:"contentType,omitempty"`
	Body        string `yaml:"body,omitempty"`
	// Headers are further headers.
	Headers map[string]string `yaml:"headers,omitempty"`
	// Pad is how many spaces follow the body.
	Pad int `yaml:"pad,omitempty"`
	// Truncated promises that many bytes more than are sent before the client stops sending.
	Truncated int `yaml:"truncated,omitempty"`

	answer `yaml:",inline"`
	// Upstream is kube-apiserver's response where we differ on purpose.
	Upstream *upstream `yaml:"upstream,omitempty"`
}

type answer struct {
	Code    int    `yaml:"code"`
	Reason  string `yaml:"reason,omitempty"`
	Message string `yaml:"message"` // of the Status; the body if there is no Status; empty if the request is right
}

func (a answer) String() string { return fmt.Sprintf("%d %s %q", a.Code, a.Reason, a.Message) }

type upstream struct {
	Why    string `yaml:"why"`
	answer `yaml:",inline"`
}

// badInputServer names a kubeconfig. If it is set, the requests go to that server, a fresh kube-apiserver 1.36, and its
// responses are compared with the list; -update corrects the list. The server must run with
// --disable-admission-plugins=ServiceAccount (no controller makes service accounts), and the user must be in
// system:masters.
const badInputServer = "BAD_INPUT_SERVER"

// TestBadInput sends the requests of testdata/bad_input.yaml, after the requests of bad_input_setup.yaml.
// test/oracle/badinput sends them to Kubernetes' server of custom resources. None may change an object.
func TestBadInput(t *testing.T) {
	reference := os.Getenv(badInputServer) != ""
	const file = "testdata/bad_input.yaml"
	cases := readBadInput(t, file)
	s := newSender(t)
	s.setUp(t)
	before := s.state(t)
	for i := range cases {
		c := &cases[i]
		t.Run(c.Name, func(t *testing.T) {
			got := s.send(t, c)
			got.Message = steady(got.Message)
			if got.Code < 300 {
				got.Message = "" // the request is valid after all: other tests check its response
			}
			switch {
			case reference:
				c.compareReference(t, got)
				return // other clients may change objects there
			case got != c.answer && *update:
				c.answer = got
			case got != c.answer:
				t.Errorf("got  %s\nwant %s", got, c.answer)
			}
			if c.Upstream != nil && (c.Upstream.Why == "" || c.Upstream.answer == c.answer) {
				t.Error("an answer of upstream without a reason, or the same as ours")
			}
			after := s.state(t)
			for path, content := range before {
				if after[path] != content {
					t.Errorf("%s has changed\nfrom %s\nto   %s", path, content, after[path])
				}
			}
			before = after
		})
	}
	if *update {
		var out bytes.Buffer
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		if err := encoder.Encode(cases); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func readBadInput(t *testing.T, file string) (cases []badInput) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// compareReference compares got, kube-apiserver's response, with the case. -update corrects the case.
func (c *badInput) compareReference(t *testing.T, got answer) {
	want := c.answer
	if c.Upstream != nil {
		want = c.Upstream.answer
	}
	got.Message, want.Message = inOrder(got.Message), inOrder(want.Message)
	switch {
	case got == want:
	case !*update:
		t.Errorf("kube-apiserver %s\nthe list says   %s", got, want)
	case got.Message == inOrder(c.Message) && got.Code == c.Code && got.Reason == c.Reason:
		c.Upstream = nil
	default:
		c.Upstream = &upstream{Why: "TODO", answer: got}
	}
}

// inOrder sorts the errors in a message with several. Kubernetes orders them by Go's maps, so their order varies.
func inOrder(message string) string {
	before, list, ok := strings.Cut(message, " is invalid: [")
	list, closed := strings.CutSuffix(list, "]")
	if !ok || !closed {
		return message
	}
	errs := strings.Split(list, ", ")
	slices.Sort(errs)
	return before + " is invalid: [" + strings.Join(errs, ", ") + "]"
}

// sender sends requests as an administrator, without a client's manners.
type sender struct {
	client *http.Client
	nobody *http.Client // without a certificate
	url    *url.URL
	tls    *tls.Config
	token  string // of a reference server; otherwise a certificate names the user
}

func newSender(t *testing.T) *sender {
	t.Helper()
	var config *rest.Config
	if file := os.Getenv(badInputServer); file != "" {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", file); err != nil {
			t.Fatal(err)
		}
	} else {
		config = startServer(t, "--ephemeral").config(t)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := rest.HTTPClientFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	return &sender{client, nobody, address, secure, config.BearerToken}
}

// setUp creates the objects of the requests.
func (s *sender) setUp(t *testing.T) {
	t.Helper()
	for _, c := range readBadInput(t, "testdata/bad_input_setup.yaml") {
		got := s.send(t, &c)
		for os.Getenv(badInputServer) != "" && got.Code == http.StatusNotFound { // a new kind takes a while there
			got = s.send(t, &c)
		}
		if got.Code != http.StatusCreated {
			t.Fatalf("%s: %s", c.Path, got)
		}
	}
}

// state returns the objects that the requests could change, by path.
func (s *sender) state(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range []string{
		"/apis/stable.example.com/v1/crontabs", "/apis/stable.example.com/v1/engines",
		"/api/v1/namespaces/default/configmaps", "/api/v1/secrets", "/api/v1/namespaces",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	} {
		got := s.send(t, &badInput{Method: http.MethodGet, Path: path})
		if got.Code != http.StatusOK {
			t.Fatalf("%s: %s", path, got)
		}
		var list struct {
			Items json.RawMessage `json:"items"` // without the list's revision: controllers write other objects
		}
		if err := json.Unmarshal([]byte(got.Message), &list); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[path] = string(list.Items)
	}
	return all
}

// send returns the response's code, and the reason and message of its Status, or its body without one.
func (s *sender) send(t *testing.T, c *badInput) answer {
	t.Helper()
	body := c.Body + strings.Repeat(" ", c.Pad)
	request, err := http.NewRequestWithContext(bounded(t, commandLimit), c.Method, s.url.String()+c.Path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case c.ContentType == "" && body != "":
		request.Header.Set("Content-Type", "application/json")
	case c.ContentType != "" && c.ContentType != "none":
		request.Header.Set("Content-Type", c.ContentType)
	}
	for name, value := range c.Headers {
		request.Header.Set(name, value)
	}
	do := s.client.Do
	if c.Headers["Authorization"] != "" {
		do = s.nobody.Do
	}
	if c.Truncated > 0 {
		do = func(r *http.Request) (*http.Response, error) { return s.truncated(r, len(body)+c.Truncated, body) }
	}
	response, err := do(request)
	switch {
	case err != nil && os.Getenv(badInputServer) != "":
		return answer{Message: "no answer"}
	case err != nil:
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	if json.Unmarshal(content, &status) == nil && status.Kind == "Status" {
		if int(status.Code) != response.StatusCode {
			t.Errorf("the Status says %d, the answer %d", status.Code, response.StatusCode)
		}
		return answer{response.StatusCode, string(status.Reason), status.Message}
	}
	return answer{Code: response.StatusCode, Message: string(content)}
}

// truncated sends less of the body than it declares and then only listens.
func (s *sender) truncated(r *http.Request, length int, body string) (*http.Response, error) {
	config := s.tls.Clone()
	config.NextProtos = []string{"http/1.1"}
	connection, err := tls.Dial("tcp", s.url.Host, config)
	if err != nil {
		return nil, err
	}
	context := r.Context()
	go func() { <-context.Done(); connection.Close() }()
	fmt.Fprintf(connection,
		"%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		r.Method, r.URL.RequestURI(), s.url.Host, r.Header.Get("Content-Type"), s.token, length, body)
	if err := connection.CloseWrite(); err != nil {
		return nil, err
	}
	var answer bytes.Buffer
	if _, err := io.Copy(&answer, connection); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(&answer), r)
}

package crd

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/test/oracle/apiextensions"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestPosts sends the bodies of testdata/posts.yaml to Bowsprit and to apiextensions-apiserver, as dry runs, and
// compares the responses: codes, messages, causes and their order.
func TestPosts(t *testing.T) {
	raw, err := os.ReadFile("testdata/posts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name string
		Body json.RawMessage
		Code int
	}
	if err := yaml.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	ours, theirs := testserver.Start(t).RESTConfig(), apiextensions.Start(t).Config
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			for _, validation := range []string{"Strict", "Ignore"} {
				got, want := post(t, ours, validation, c.Body), post(t, theirs, validation, c.Body)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s:\nBowsprit:\n%+v\nKubernetes:\n%+v", validation, got, want)
				}
				if validation == "Ignore" && c.Code != want.code {
					t.Errorf("the answer is %d, expected %d", want.code, c.Code)
				}
			}
		})
	}
}

// response is a server's response to a body.
type response struct {
	code     int
	status   map[string]any
	warnings []string
}

func post(t *testing.T, config *rest.Config, validation string, body []byte) response {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	host := config.Host
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	url := strings.TrimSuffix(host, "/") +
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All&fieldValidation=" + validation
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := response{code: resp.StatusCode, warnings: resp.Header["Warning"]}
	if resp.StatusCode != http.StatusCreated {
		if err := json.Unmarshal(answer, &out.status); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
	}
	return out
}

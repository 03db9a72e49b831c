package extension_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/test/vessels"
	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkList lists 10,000 objects of a CustomResourceDefinition, and of a kind of an extension with functions for
// defaults and validation, in one server, after a first read of each. The two lists alternate, so that other load on
// the machine affects both the same. They must cost the same.
func BenchmarkList(b *testing.B) {
	kinds, err := extension.In(vessels.Kinds()...)
	if err != nil {
		b.Fatal(err)
	}
	s := testserver.Start(b, func(c *bowsprit.Config) { c.Extensions = append(c.Extensions, kinds) })
	client, err := rest.HTTPClientFor(s.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	post(b, client, s.URL()+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boats.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"boats","kind":"Vessel"},"versions":[{"name":"v1",
		"served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
		"properties":{"captain":{"type":"string"},"kind":{"type":"string","default":"Sloop"},"masts":{"type":"integer",
		"default":1}}}}}}}]}}`)
	both := []struct{ name, group, plural string }{
		{"definition", "example.com", "boats"}, {"extension", vessels.Group, "vessels"},
	}
	var urls []string
	for _, one := range both {
		url := s.URL() + "/apis/" + one.group + "/v1/namespaces/default/" + one.plural
		var workers sync.WaitGroup
		for w := range 16 {
			workers.Go(func() {
				for i := w; i < 10_000; i += 16 {
					post(b, client, url, fmt.Sprintf(
						`{"apiVersion":"%s/v1","kind":"Vessel","metadata":{"name":"v-%05d"},"spec":{"captain":"Cook"}}`, one.group, i))
				}
			})
		}
		workers.Wait()
		list(b, client, url) // the first read of an object decodes it, and fills in defaults
		urls = append(urls, url)
	}
	took := make([]time.Duration, len(both))
	for turn := 0; b.Loop(); turn++ {
		for i := range both {
			i = (i + turn) % len(both)
			began := time.Now()
			list(b, client, urls[i])
			took[i] += time.Since(began)
		}
	}
	for i, one := range both {
		b.ReportMetric(float64(took[i].Microseconds())/1000/float64(b.N), "ms/"+one.name)
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "extension/definition")
}

func list(b *testing.B, client *http.Client, url string) (size int64) {
	b.Helper()
	res, err := client.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	size, err = io.Copy(io.Discard, res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("%s %v", res.Status, err)
	}
	return size
}

func post(b *testing.B, client *http.Client, url, body string) {
	b.Helper()
	res, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	defer res.Body.Close()
	if answer, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusCreated {
		b.Errorf("%s: %s", res.Status, answer)
	}
}

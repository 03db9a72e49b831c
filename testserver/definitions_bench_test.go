package testserver_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkDefinition posts a definition of 30 KB to a server with 100 or 2,000 similar ones in 20 groups, and lists
// its kind with the next request. The cost must not depend on the number of definitions: cpu-us/op is client and
// server, heap-B/op the growth of memory. Run it with -benchtime 200x, because it measures the definitions after the
// first ones.
func BenchmarkDefinition(b *testing.B) {
	for _, before := range []int{100, 2000} {
		b.Run(fmt.Sprint(before), func(b *testing.B) {
			s := testserver.Start(b)
			client, err := rest.HTTPClientFor(s.RESTConfig())
			if err != nil {
				b.Fatal(err)
			}
			var workers sync.WaitGroup
			for worker := range 4 {
				workers.Go(func() {
					for i := worker; i < before; i += 4 {
						if err := define(client, s.URL(), i); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			workers.Wait()
			held, used := heap(), cpu()
			b.ResetTimer()
			for i := range b.N {
				if err := define(client, s.URL(), before+i); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64((cpu()-used).Microseconds())/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(heap()-held)/float64(b.N), "heap-B/op")
		})
	}
}

// define makes definition number i and uses it.
func define(client *http.Client, url string, i int) error {
	group := fmt.Sprintf("g%d.example.com", i%20)
	var properties strings.Builder
	for p := range 150 {
		fmt.Fprintf(&properties,
			`%s"field%d":{"type":"object","description":"Field %d of definition %d, which says at some length what it is for, as fields do.","properties":{"a":{"type":"string"},"b":{"type":"integer","minimum":%d}}}`,
			strings.Repeat(",", min(p, 1)), p, p, i, p)
	}
	body := fmt.Sprintf(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"kinds%d.%s"},
		"spec":{"group":%q,"scope":"Namespaced","names":{"plural":"kinds%d","kind":"Kind%d"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}}}}}]}}`, i, group, group, i, i, properties.String())
	resp, err := client.Post(url+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json",
		strings.NewReader(body))
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("definition %d: %s", i, resp.Status)
	}
	_, err = fetch(client, fmt.Sprintf("%s/apis/%s/v1/kinds%d", url, group, i))
	return err
}

// heap returns the size of the live heap, in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees objects that the first one released from pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

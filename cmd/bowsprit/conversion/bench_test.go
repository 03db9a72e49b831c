package conversion

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

const benchDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.com
  annotations:
    bowsprit.dev/conversion: |
      steps:
      - from: v1
        to: v2
        rules:
        - {split: spec.hostPort, to: [spec.host, spec.port], separator: ":"}
        - {wrap: spec.bucket, to: spec.buckets}
        - {enum: spec.mode, values: {Always: always, Never: never}}
        - {duration: spec.timeoutSeconds, to: spec.timeout, unit: s}
        - {move: spec.size, to: spec.replicas}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  conversion: {strategy: Declarative}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              hostPort: {type: string}
              bucket: {type: string}
              mode: {type: string}
              timeoutSeconds: {type: integer}
              size: {type: integer}
              items: &items
                type: array
                items: {type: object, properties: {name: {type: string}, text: {type: string}}}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              host: {type: string}
              port: {type: integer}
              buckets: {type: array, items: {type: string}}
              mode: {type: string}
              timeout: {type: string}
              replicas: {type: integer}
              items: *items
`

// benchObject is an object of 5 KB.
func benchObject() []byte {
	var items []any
	for i := range 40 {
		items = append(items, object.Object{"name": fmt.Sprint("item", i), "text": strings.Repeat("text ", 18)})
	}
	return codec.AppendJSON(nil, object.Object{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": object.Object{"name": "a", "uid": "u"},
		"spec": object.Object{
			"hostPort": "example.com:8080", "bucket": "b", "mode": "Always", "timeoutSeconds": int64(90),
			"size": int64(3), "items": items,
		},
	})
}

// BenchmarkBesideWebhook converts objects of 5 KB by five rules in the process, and by a webhook over TLS on the same
// machine, with one object and with 500 in a call. An operation is one object. The metric cpu-µs is the time of all
// processors, of server and webhook together, and does not depend on the load of the machine much.
func BenchmarkBesideWebhook(b *testing.B) {
	file := filepath.Join(b.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(benchDefinition), 0o600); err != nil {
		b.Fatal(err)
	}
	_, all, err := load([]string{file}, nil)
	if err != nil {
		b.Fatal(err)
	}
	raw := benchObject()
	b.Run("decode and encode", func(b *testing.B) { benchRules(b, all[0], raw, 0) })
	b.Run("rules", func(b *testing.B) { benchRules(b, all[0], raw, 1) })
	for _, count := range []int{1, 500} {
		b.Run(fmt.Sprintf("webhook, %d in a call", count), func(b *testing.B) { benchWebhook(b, all, raw, count) })
	}
}

// benchRules decodes, converts and encodes an object.
func benchRules(b *testing.B, d *definition, raw []byte, conversions int) {
	began := processorTime(b)
	for b.Loop() {
		v, err := codec.DecodeJSON(raw)
		if err != nil {
			b.Fatal(err)
		}
		for range conversions {
			if err := d.plan.Convert(v.(object.Object), "v1", "v2"); err != nil {
				b.Fatal(err)
			}
		}
		_ = codec.AppendJSON(nil, v)
	}
	reportTime(b, began, 1)
}

// benchWebhook sends reviews with count objects, and decodes and encodes the answers as an API server does.
func benchWebhook(b *testing.B, all []*definition, raw []byte, count int) {
	registry := prometheus.NewRegistry()
	r, err := newReviewer(all, registry)
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewTLSServer(r.handler(registry))
	defer s.Close()
	client := s.Client()
	calls := 0
	began := processorTime(b)
	for b.Loop() {
		if calls++; calls%count != 0 {
			continue // an operation is one object
		}
		var objects [][]byte
		for range count {
			v, err := codec.DecodeJSON(raw)
			if err != nil {
				b.Fatal(err)
			}
			objects = append(objects, codec.AppendJSON(nil, v))
		}
		body := request("v1", "example.com/v2", string(bytes.Join(objects, []byte(","))))
		resp, err := client.Post(s.URL+"/convert", "application/json", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp.Status, err)
		}
		review := &apiextensionsv1.ConversionReview{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(answer, review); err != nil {
			b.Fatal(err)
		}
		for _, obj := range review.Response.ConvertedObjects {
			v, err := codec.DecodeJSON(obj.Raw)
			if err != nil {
				b.Fatal(err)
			}
			_ = codec.AppendJSON(nil, v)
		}
	}
	reportTime(b, began, calls/count*count)
}

// processorTime returns the time of all processors that the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportTime reports the processor time of an object. objects is 1 for an object in each operation.
func reportTime(b *testing.B, began time.Duration, objects int) {
	if objects == 1 {
		objects = b.N
	}
	if objects == 0 {
		return // the first rounds are too short for a call
	}
	b.ReportMetric(float64((processorTime(b)-began).Nanoseconds())/1000/float64(objects), "cpu-µs/object")
}

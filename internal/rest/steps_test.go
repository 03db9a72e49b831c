package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// steps is a context that ends when its Err has been called so many times.
type steps struct {
	context.Context
	left atomic.Int64
}

func (s *steps) Err() error {
	if s.left.Add(-1) < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// stepped sends a request that ends after so many looks at its context, and returns the error that it ended with as a
// status.
func stepped(t *testing.T, s *server, left int64, method, target, contentType, body string) int {
	t.Helper()
	ctx := &steps{Context: t.Context()}
	ctx.left.Store(left)
	return within(ctx, t, s, method, target, contentType, codec.JSON, body)
}

// within sends a request with a context, and returns the status of its response.
func within(ctx context.Context, t *testing.T, s *server, method, target, contentType, accept, body string) int {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body)).WithContext(ctx)
	r.Header.Set("Content-Type", contentType)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	info, err := request.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r, info, admin)
	return w.Code
}

// TestComputingEnds has requests end while they compute: each looks at its context and gives up. With time left each is
// answered, so it is the end that ends it.
func TestComputingEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	const path = "/api/v1/namespaces/default/configmaps"
	for i := range 1500 {
		send(t, s, http.MethodPost, path, fmt.Sprintf(`{"metadata":{"name":"n%d","labels":{"a":"%d"}}}`, i, i), nil)
	}
	var data strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&data, `"k%d":"",`, i)
	}
	object := func(name string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{` + data.String() + `"x":""}}`
	}
	for _, c := range []struct{ method, target, contentType, body string }{
		{http.MethodGet, path + "?resourceVersion=0", "", ""},
		{http.MethodGet, path + "?resourceVersion=0&labelSelector=a!%3Db", "", ""},
		{http.MethodGet, path + "?resourceVersion=0&fieldSelector=metadata.name!%3Db", "", ""},
		{http.MethodGet, path + "?resourceVersion=0&labelSelector=a+in+(none,neither)", "", ""},
		{http.MethodPost, path + "?dryRun=All", "application/json", object("new")},
		{http.MethodPost, path + "?dryRun=All", "application/yaml", object("new")},
		{http.MethodPut, path + "/n1?dryRun=All", "application/json", object("n1")},
	} {
		if code := stepped(t, s, 1<<40, c.method, c.target, c.contentType, c.body); code/100 != 2 {
			t.Errorf("%s %s with time left: status %d", c.method, c.target, code)
		}
		if code := stepped(t, s, 0, c.method, c.target, c.contentType, c.body); code/100 == 2 {
			t.Errorf("%s %s without time: status %d", c.method, c.target, code)
		}
	}
}

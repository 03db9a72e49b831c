package codec

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func request(target string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestNegotiate(t *testing.T) {
	table := Media{Type: JSON, As: "Table", Group: "meta.k8s.io", Version: "v1"}
	for _, c := range []struct {
		accept, query, agent string
		want                 Media
		bad                  bool
	}{
		{accept: "", want: Media{Type: JSON}},
		{accept: "application/json", want: Media{Type: JSON}},
		{accept: "*/*", want: Media{Type: JSON}},
		{accept: "application/*", want: Media{Type: JSON}},
		{accept: "application/yaml", want: Media{Type: YAML}},
		{accept: "text/html, application/yaml;q=0.5", want: Media{Type: YAML}},
		{accept: "application/json;q=0.1, application/yaml", want: Media{Type: YAML}},
		{
			accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", want: table,
		},
		{accept: "application/json;as=Table;v=v9;g=meta.k8s.io,application/json", want: Media{Type: JSON}},
		{accept: "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
			want: Media{Type: Protobuf, As: "PartialObjectMetadata", Group: "meta.k8s.io", Version: "v1"}},
		{accept: "application/json;as=Other;g=meta.k8s.io;v=v1", bad: true},
		{accept: "application/json;pretty=1", want: Media{Type: JSON, Pretty: true}},
		{accept: "application/json;stream=watch", want: Media{Type: JSON}},
		{accept: "application/json;stream=other", bad: true},
		{accept: "application/vnd.kubernetes.protobuf", bad: true},
		{accept: "text/html", bad: true},
		{accept: "nonsense", bad: true},
		{query: "?pretty=true", want: Media{Type: JSON, Pretty: true}},
		{query: "?pretty=1", want: Media{Type: JSON, Pretty: true}},
		{query: "?pretty=false", agent: "curl/8", want: Media{Type: JSON}},
		{agent: "curl/8", want: Media{Type: JSON, Pretty: true}},
		{agent: "Mozilla/5.0 (X11)", want: Media{Type: JSON, Pretty: true}},
		{agent: "kubectl/v1", want: Media{Type: JSON}},
	} {
		r := request("/x"+c.query, "User-Agent", c.agent)
		if c.accept != "" {
			r.Header.Set("Accept", c.accept)
		}
		got, err := Negotiate(r, Offer{})
		if c.bad {
			if want := "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"; err == nil || err.Error() != want || apierrors.ReasonForError(err) != "NotAcceptable" {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	_, err := NegotiateWatch(request("/x", "Accept", "application/yaml"), Offer{})
	if want := "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"; err == nil || err.Error() != want {
		t.Errorf("watch in YAML: %v", err)
	}
	if m, err := NegotiateWatch(request("/x", "Accept", "application/json;stream=watch"), Offer{}); err != nil ||
		m.Type != JSON {
		t.Errorf("watch in JSON: %v, %v", m, err)
	}
}

func TestWriteError(t *testing.T) {
	cronTabs := schema.GroupResource{Group: "stable.example.com", Resource: "crontabs"}
	for _, c := range []struct {
		name    string
		err     error
		headers []string
		code    int
		body    string
		answer  [2]string
	}{
		{name: "status", err: apierrors.NewNotFound(cronTabs, "x"), code: 404,
			body: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"crontabs.stable.example.com \"x\" not found","reason":"NotFound","details":{"name":"x","group":"stable.example.com","kind":"crontabs"},"code":404}` + "\n"},
		{name: "wrapped status", err: fmt.Errorf("get: %w", apierrors.NewConflict(cronTabs, "x", errors.New("old"))),
			code: 409,
			body: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on crontabs.stable.example.com \"x\": old","reason":"Conflict","details":{"name":"x","group":"stable.example.com","kind":"crontabs"},"code":409}` + "\n"},
		{name: "unexpected", err: errors.New("boom"), code: 500,
			body: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"boom","code":500}` +
				"\n"},
		{name: "late", err: fmt.Errorf("range: %w", context.DeadlineExceeded), code: 504,
			body: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: request did not complete within requested timeout - context deadline exceeded","reason":"Timeout","details":{},"code":504}` + "\n"},
		{name: "retry", err: apierrors.NewTooManyRequests("slow down", 7), code: 429,
			answer: [2]string{"Retry-After", "7"},
			body:   `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"slow down","reason":"TooManyRequests","details":{"retryAfterSeconds":7},"code":429}` + "\n"},
		{name: "unauthorized", err: apierrors.NewUnauthorized("Unauthorized"), code: 401,
			answer: [2]string{"WWW-Authenticate", "Bearer"},
			body:   `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}` + "\n"},
		{name: "yaml", err: errors.New("boom"), headers: []string{"Accept", YAML}, code: 500,
			answer: [2]string{"Content-Type", YAML},
			body:   "apiVersion: v1\ncode: 500\nkind: Status\nmessage: boom\nmetadata: {}\nstatus: Failure\n"},
		{name: "table", err: errors.New("boom"),
			headers: []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}, code: 500,
			body: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"boom","code":500}` +
				"\n"},
		{name: "not acceptable", err: errors.New("boom"), headers: []string{"Accept", "text/html"}, code: 500,
			answer: [2]string{"Content-Type", JSON},
			body:   "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"boom\",\n  \"code\": 500\n}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			WriteError(w, request("/x", c.headers...), c.err)
			if w.Code != c.code || w.Body.String() != c.body || c.answer[0] != "" &&
				w.Header().Get(c.answer[0]) != c.answer[1] {
				t.Errorf("%d %v\n%s\nwant\n%s", w.Code, w.Header(), w.Body, c.body)
			}
		})
	}
}

func TestWriteObject(t *testing.T) {
	doc := []byte(`{"a":1,"l":[],"m":{}}`)
	for _, c := range []struct {
		media      Media
		typ, wants string
	}{
		{Media{Type: JSON}, JSON, string(doc) + "\n"},
		{Media{Type: JSON, Pretty: true}, JSON, "{\n  \"a\": 1,\n  \"l\": [],\n  \"m\": {}\n}"},
		{Media{Type: YAML, Pretty: true}, YAML, "a: 1\nl: []\nm: {}\n"},
	} {
		w := httptest.NewRecorder()
		WriteObject(w, request("/x", "Accept-Encoding", "gzip"), 201, doc, c.media)
		if w.Code != 201 || w.Body.String() != c.wants || w.Header().Get("Content-Type") != c.typ ||
			w.Header().Get("Content-Length") != fmt.Sprint(len(c.wants)) {
			t.Errorf("%+v: %d %v %q", c.media, w.Code, w.Header(), w.Body)
		}
	}
	if string(doc) != `{"a":1,"l":[],"m":{}}` {
		t.Error("document was changed")
	}

	large, err := json.Marshal(map[string]string{"a": strings.Repeat("x", compressAbove)})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	WriteObject(w, request("/x", "Accept-Encoding", "br, gzip"), 200, large, Media{Type: JSON})
	if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" ||
		w.Header().Get("Content-Length") != "" {
		t.Errorf("large body: %v", w.Header())
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, append(large, '\n')) {
		t.Errorf("large body: %d bytes, %v", len(got), err)
	}
	w = httptest.NewRecorder()
	WriteObject(w, request("/x"), 200, large, Media{Type: JSON})
	if w.Header().Get("Content-Encoding") != "" || w.Body.Len() != len(large)+1 {
		t.Errorf("client without gzip: %v", w.Header())
	}
}

func TestCompress(t *testing.T) {
	for _, size := range []int{0, 10, compressAbove, compressAbove + 1, 3 * compressAbove} {
		w := httptest.NewRecorder()
		c := Compress(w, request("/x", "Accept-Encoding", "gzip"))
		c.WriteHeader(203)
		piece := bytes.Repeat([]byte("0123456789abcdef"), 64)
		var want []byte
		for len(want) < size {
			n := min(len(piece), size-len(want))
			want = append(want, piece[:n]...)
			if _, err := c.Write(piece[:n]); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		var got []byte
		if size > compressAbove {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			got, _ = io.ReadAll(z)
		} else {
			got = w.Body.Bytes()
		}
		if w.Code != 203 || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: code %d, %d bytes", size, w.Code, len(got))
		}
	}
}

func TestPartialMetadata(t *testing.T) {
	for doc, want := range map[string]string{
		`{"apiVersion":"v1","kind":"X","metadata":{"name":"a\"}","labels":{"x":"y"}},"spec":{"metadata":1}}`: `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a\"}","labels":{"x":"y"}}}`,
		`{"spec":[{"metadata":{}}],"kind":"X"}`:            `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{}}`,
		` { "n" : -1.5e3 , "metadata" : { "name": "b" } }`: `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{ "name": "b" }}`,
	} {
		got, err := PartialMetadata([]byte(doc), "meta.k8s.io/v1")
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", doc, got, err)
		}
	}
	for _, doc := range []string{``, `[]`, `{"a"`, `{"a":`, `{`, `{"a":1`} {
		if got, err := PartialMetadata([]byte(doc), "meta.k8s.io/v1"); err == nil {
			t.Errorf("%q: %s", doc, got)
		}
	}
}

func FuzzField(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc), "metadata")
	}
	f.Fuzz(func(t *testing.T, doc []byte, name string) {
		got, err := Field(doc, name) // must terminate for any doc
		v, bad := DecodeJSON(doc)
		m, ok := v.(map[string]any)
		if bad != nil || !ok || bytes.ContainsRune(doc, '\\') || strings.ContainsAny(name, "\\\"\ufffd") {
			return
		}
		_, repeated, _ := decode(doc)
		if want, there := m[name]; err != nil || there != (got != nil) {
			t.Fatalf("%q in %q: %q, %v", name, doc, got, err)
		} else if there && !repeated {
			v, err := DecodeJSON(got)
			if err != nil || !bytes.Equal(AppendJSON(nil, v), AppendJSON(nil, want)) {
				t.Fatalf("%q in %q: %q, want %v", name, doc, got, want)
			}
		}
	})
}

// TestStatusCodes checks that an error with an invalid HTTP code becomes a 500.
func TestStatusCodes(t *testing.T) {
	for code, want := range map[int32]int{
		0: 500, -1: 500, 42: 500, 101: 500, 403: 403, 999: 999, 1000: 500, 1 << 30: 500,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: "no"}}
		if status := WriteError(w, r, err); w.Code != want || int(status.Code) != want ||
			!strings.Contains(w.Body.String(), `"message":"no"`) {
			t.Errorf("%d: %d %s", code, w.Code, w.Body)
		}
	}
}

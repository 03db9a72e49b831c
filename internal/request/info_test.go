package request

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// The full comparison with Kubernetes' resolver, with fuzzing, is in test/oracle/request.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, target string
		want           string // verb prefix|group|version|namespace|resource|subresource|name
	}{
		{"GET", "/api/v1/namespaces/default/pods/x", "get api||v1|default|pods||x"},
		{"HEAD", "/api/v1/namespaces/default/pods/x", "get api||v1|default|pods||x"},
		{"GET", "/api/v1/namespaces/default/pods", "list api||v1|default|pods||"},
		{"GET", "/api/v1/namespaces/default/pods?watch=true", "watch api||v1|default|pods||"},
		{"GET", "/api/v1/namespaces/default/pods?watch", "watch api||v1|default|pods||"},
		{"GET", "/api/v1/namespaces/default/pods?watch=FALSE", "list api||v1|default|pods||"},
		{"GET", "/api/v1/namespaces/default/pods?watch=0", "list api||v1|default|pods||"},
		{"GET", "/api/v1/namespaces/default/pods?watch=1&limit=x&fieldSelector=metadata.name%3Da",
			"watch api||v1|default|pods||"},
		{"GET", "/apis/g.io/v1/cs?fieldSelector=metadata.name%3Da", "list apis|g.io|v1||cs||a"},
		{"GET", "/apis/g.io/v1/cs?fieldSelector=metadata.name%21%3Da", "list apis|g.io|v1||cs||"},
		{"GET", "/apis/g.io/v1/cs?fieldSelector=metadata.name%3D..", "list apis|g.io|v1||cs||"},
		{"GET", "/apis/g.io/v1/cs?fieldSelector=metadata.name%3Da&labelSelector=%21%21", "list apis|g.io|v1||cs||"},
		{"POST", "/apis/g.io/v1/namespaces/n/cs", "create apis|g.io|v1|n|cs||"},
		{"PUT", "/apis/g.io/v1/namespaces/n/cs/x/status", "update apis|g.io|v1|n|cs|status|x"},
		{"PATCH", "/apis/g.io/v1/namespaces/n/cs/x/scale", "patch apis|g.io|v1|n|cs|scale|x"},
		{"DELETE", "/apis/g.io/v1/namespaces/n/cs/x", "delete apis|g.io|v1|n|cs||x"},
		{"DELETE", "/apis/g.io/v1/namespaces/n/cs", "deletecollection apis|g.io|v1|n|cs||"},
		{"OPTIONS", "/apis/g.io/v1/namespaces/n/cs", " apis|g.io|v1|n|cs||"},
		{"GET", "/api/v1/namespaces", "list api||v1||namespaces||"},
		{"GET", "/api/v1/namespaces/n", "get api||v1|n|namespaces||n"},
		{"PUT", "/api/v1/namespaces/n/finalize", "update api||v1|n|namespaces|finalize|n"},
		{"PUT", "/api/v1/namespaces/n/status", "update api||v1|n|namespaces|status|n"},
		{"GET", "/api/v1/watch/namespaces/n/pods", "watch api||v1|n|pods||"},
		{"GET", "/api/v1/watch/pods", "watch api||v1||pods||"},
		{"GET", "/api/v1/proxy/nodes/x/a/b", "proxy api||v1||nodes||x"},
		{"GET", "/apis/g.io/v1", "get |||||| nonresource"},
		{"GET", "/apis/g.io", "get |||||| nonresource"},
		{"GET", "/api/v1", "get |||||| nonresource"},
		{"GET", "/healthz", "get |||||| nonresource"},
		{"GET", "/", "get |||||| nonresource"},
		{"OPTIONS", "/foo/bar/baz", "options |||||| nonresource"},
		{"GET", "/api/v1/pods/", "list api||v1||pods||"},
		{"GET", "//api/v1/pods", "list api||v1||pods||"},
		{"GET", "/api//v1/pods", "get api||||v1||pods"},
		{"GET", "/api/v1/pods/a%2Fb", "get api||v1||pods|b|a"},
		{"GET", "/api/v1/../pods", "get api||v1||..||pods"},
	} {
		r := httptest.NewRequest(tc.method, "http://h/", nil)
		u, err := url.Parse("http://h" + tc.target)
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
		info, err := Parse(r)
		if err != nil {
			t.Errorf("%s %s: %v", tc.method, tc.target, err)
		}
		got := info.Verb + " " +
			strings.Join([]string{info.APIPrefix, info.Group, info.Version, info.Namespace, info.Resource,
				info.Subresource, info.Name}, "|")
		if !info.IsResource {
			got = info.Verb + " |||||| nonresource"
		}
		if got != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.method, tc.target, got, tc.want)
		}
	}
}

func TestParseError(t *testing.T) {
	t.Parallel()
	info, err := Parse(httptest.NewRequest("GET", "/api/v1/watch", nil))
	if err == nil || err.Error() != "unable to determine kind and namespace from url, /api/v1/watch" {
		t.Errorf("error %v", err)
	}
	if info == nil || !info.IsResource {
		t.Errorf("info %+v", info)
	}
}

func TestSelectorsForAuthorizers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ method, target, field, label string }{
		{"GET", "/api/v1/pods?fieldSelector=a%3Db&labelSelector=c&labelSelector=d", "a=b", "c"},
		{"DELETE", "/api/v1/pods?fieldSelector=a%3Db", "a=b", ""},
		{"GET", "/api/v1/pods/x?fieldSelector=a%3Db", "", ""},
		{"DELETE", "/api/v1/pods/x?fieldSelector=a%3Db", "", ""},
		{"GET", "/api/v1/watch/pods?fieldSelector=a%3Db", "", ""},
		{"GET", "/api/v1/pods?fieldSelector=a%3Db&limit=x", "a=b", ""},
	} {
		info, err := Parse(httptest.NewRequest(tc.method, tc.target, nil))
		if err != nil || info.FieldSelector != tc.field || info.LabelSelector != tc.label {
			t.Errorf("%s %s: %q %q %v", tc.method, tc.target, info.FieldSelector, info.LabelSelector, err)
		}
	}
}

func TestLongRunningAndMutating(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, target string
		long, mutating bool
	}{
		{"GET", "/api/v1/pods?watch=1", true, false},
		{"GET", "/api/v1/pods", false, false},
		{"GET", "/api/v1/namespaces/n/pods/x/log", false, false},
		{"POST", "/api/v1/namespaces/n/pods/x/exec", false, true},
		{"DELETE", "/api/v1/pods", false, true},
		{"GET", "/debug/pprof/profile", true, false},
		{"GET", "/healthz", false, false},
		{"POST", "/healthz", false, true},
	} {
		info, _ := Parse(httptest.NewRequest(tc.method, tc.target, nil))
		if info.LongRunning() != tc.long || info.Mutating() != tc.mutating {
			t.Errorf("%s %s: long %v, mutating %v", tc.method, tc.target, info.LongRunning(), info.Mutating())
		}
	}
}

func TestPartsOfLongPaths(t *testing.T) {
	t.Parallel()
	long := "/api/v1/pods/x/proxy/" + strings.Repeat("a/", 20) + "b"
	info, _ := Parse(httptest.NewRequest("GET", long, nil))
	if want := strings.Split(strings.TrimPrefix(long, "/api/v1/"), "/"); !slices.Equal(info.Parts, want) {
		t.Errorf("parts %q", info.Parts)
	}
}

func BenchmarkParse(b *testing.B) {
	for name, target := range map[string]string{
		"get":   "/apis/stable.example.com/v1/namespaces/default/crontabs/my-cron",
		"list":  "/apis/stable.example.com/v1/namespaces/default/crontabs?limit=500",
		"watch": "/apis/stable.example.com/v1/crontabs?allowWatchBookmarks=true&resourceVersion=12345&timeoutSeconds=357&watch=true",
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, target, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

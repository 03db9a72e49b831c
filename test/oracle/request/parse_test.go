package request

import (
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	upstream "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/bowsprit/bowsprit/internal/request"
)

// compare parses one request with both and reports the first difference.
func compare(t *testing.T, method, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		return
	}
	r := &http.Request{Method: method, URL: u}
	resolver := upstream.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	want, wantErr := resolver.NewRequestInfo(r)
	got, gotErr := request.Parse(r)
	if errText(gotErr) != errText(wantErr) {
		t.Fatalf("%s %q: error %v, want %v", method, target, gotErr, wantErr)
	}
	seen := upstream.RequestInfo{
		IsResourceRequest: got.IsResource, Path: got.Path, Verb: got.Verb,
		APIPrefix: got.APIPrefix, APIGroup: got.Group, APIVersion: got.Version,
		Namespace: got.Namespace, Resource: got.Resource, Subresource: got.Subresource, Name: got.Name,
		Parts: got.Parts, FieldSelector: got.FieldSelector, LabelSelector: got.LabelSelector,
	}
	if !reflect.DeepEqual(&seen, want) {
		t.Fatalf("%s %q:\n got %+v\nwant %+v", method, target, seen, *want)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var (
	methods  = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "get", ""}
	segments = []string{
		"api", "apis", "v1", "v1beta1", "stable.example.com", "namespaces", "default", "pods", "crontabs", "x",
		"status", "finalize", "scale",
		"watch", "proxy", "log", "exec", "", "", ".", "..", "%2F", "a%2Fb", "a%20b", "%25", "healthz", "openapi", "ü",
		"-",
	}
	params = []string{
		"watch", "watch=", "watch=true", "watch=false", "watch=FALSE", "watch=0", "watch=x", "watch=0&watch=1",
		"limit=5", "limit=x", "limit=", "timeoutSeconds=3", "timeoutSeconds=-", "timeoutSeconds=", "continue=abc",
		"resourceVersion=1", "resourceVersionMatch=Foo",
		"sendInitialEvents=true", "allowWatchBookmarks=x", "shardSelector=x",
		"fieldSelector=", "fieldSelector=metadata.name%3Dx", "fieldSelector=metadata.name%3D%3Dx",
		"fieldSelector=metadata.name!%3Dx", "fieldSelector=metadata.name=x",
		"fieldSelector=metadata.name%3D", "fieldSelector=metadata.name%3D.", "fieldSelector=metadata.name%3Da%2Fb",
		"fieldSelector=metadata.name%3Da%25b",
		"fieldSelector=metadata.name%3Dx,spec.a%3Db", "fieldSelector=metadata.name%3Dx,metadata.name%3Dy",
		"fieldSelector=x", "fieldSelector=a%3Db&fieldSelector=metadata.name%3Dx",
		"labelSelector=", "labelSelector=a%3Db", "labelSelector=!!", "labelSelector=a+in+(b,c)",
		"labelSelector=a&labelSelector=!!",
		"pretty", "dryRun=All", "%zz=1", "a;b=1", "field%53elector=metadata.name%3Dx", "&&", "=",
	}
)

func TestParseMatchesKubernetes(t *testing.T) {
	quiet(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		var path strings.Builder
		if rng.IntN(4) > 0 {
			path.WriteString([]string{"/api/v1", "/apis/stable.example.com/v1"}[rng.IntN(2)])
		}
		for range rng.IntN(7) {
			path.WriteString("/" + segments[rng.IntN(len(segments))])
		}
		var query []string
		for range rng.IntN(4) {
			query = append(query, params[rng.IntN(len(params))])
		}
		target := path.String()
		if len(query) > 0 {
			target += "?" + strings.Join(query, "&")
		}
		compare(t, methods[rng.IntN(len(methods))], target)
	}
}

func FuzzParseMatchesKubernetes(f *testing.F) {
	for _, target := range []string{
		"/", "", "*", "/api/v1/namespaces/default/pods/x/status", "/apis/g.io/v1/watch/namespaces/n/cs?watch=1",
		"/api/v1/proxy", "//api//v1/",
		"/api/v1/pods?fieldSelector=metadata.name%3Dx", "/api/v1/pods?limit=x&watch", "http://h:1/apis/g/v1/c/../..",
	} {
		f.Add("GET", target)
		f.Add("DELETE", target)
	}
	quiet(f)
	f.Fuzz(compare)
}

// quiet discards the resolver's log about bad options.
func quiet(t testing.TB) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	klog.SetOutput(io.Discard)
}

package convert

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
)

// scripted is a webhook that sends a given response, with UID replaced by the request's.
type scripted struct {
	*httptest.Server
	code    int
	answer  string
	request string // the last question, its uid replaced by UID
}

func newScripted(t *testing.T) *scripted {
	s := &scripted{code: http.StatusOK}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var review struct{ Request struct{ UID string } }
		_ = json.Unmarshal(body, &review)
		s.request = strings.ReplaceAll(string(body), review.Request.UID, "UID")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.code)
		_, _ = io.WriteString(w, strings.ReplaceAll(s.answer, "UID", review.Request.UID))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// pair converts one object from v1 to v2 with upstream's converter and with ours.
type pair struct {
	hook     *scripted
	upstream runtime.ObjectConvertor
	ours     *convert.Converter
	resource *catalog.Resource
}

func newPair(t *testing.T, reviewVersions ...string) *pair {
	hook := newScripted(t)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	url := hook.URL + "/convert"
	by := &apiextensionsv1.WebhookConversion{
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca},
		ConversionReviewVersions: reviewVersions,
	}
	factory, err := conversion.NewCRConverterFactory(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	safe, _, err := factory.NewConverter(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    "example.com",
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2"}},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter, Webhook: by,
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := webhook.New(webhook.Options{})
	t.Cleanup(calls.Close)
	v1, v2 := &catalog.Version{Name: "v1"}, &catalog.Version{Name: "v2"}
	return &pair{
		hook: hook, upstream: safe, ours: convert.New(convert.Options{Call: calls.CallConversion}),
		resource: &catalog.Resource{
			Group: "example.com", Plural: "crontabs", Kind: "CronTab", Versions: []*catalog.Version{v2, v1},
			Storage:    v1,
			Conversion: func() (*apiextensionsv1.WebhookConversion, error) { return by, nil },
		},
	}
}

// convert returns the results of both, and their questions.
func (p *pair) convert(t *testing.T, obj map[string]any) (theirs, ours map[string]any, theirErr, ourErr error) {
	t.Helper()
	out, theirErr := p.upstream.ConvertToVersion(&unstructured.Unstructured{Object: runtime.DeepCopyJSON(obj)},
		schema.GroupVersion{Group: "example.com", Version: "v2"})
	request := p.hook.request
	if theirErr == nil {
		theirs = out.(*unstructured.Unstructured).Object
	}
	before := runtime.DeepCopyJSON(obj)
	ours, ourErr = p.ours.Convert(t.Context(), p.resource, p.resource.Versions[1], p.resource.Versions[0], obj)
	if !reflect.DeepEqual(before, obj) {
		t.Errorf("the object was changed: %v", obj)
	}
	if strings.TrimSpace(request) != strings.TrimSpace(p.hook.request) {
		t.Errorf("upstream asks\n%s\nand we ask\n%s", request, p.hook.request)
	}
	return theirs, ours, theirErr, ourErr
}

func (p *pair) compare(t *testing.T, obj map[string]any) (failed bool) {
	t.Helper()
	theirs, ours, theirErr, ourErr := p.convert(t, obj)
	if text(theirErr) != text(ourErr) || !reflect.DeepEqual(theirs, ours) {
		t.Errorf("answer %d %s\nupstream: %v\n          %v\nours:     %v\n          %v", p.hook.code, p.hook.answer,
			theirErr, theirs, ourErr, ours)
	}
	return theirErr != nil
}

var uids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|invalid character '[^']*'`)

// text returns the text of an error without the random uid of the call.
func text(err error) string { return uids.ReplaceAllString(fmt.Sprint(err), "UID") }

// sample is an object with all that a conversion must keep.
func sample() map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "CronTab",
		"metadata": map[string]any{
			"name": "a", "namespace": "ns", "uid": "u-1", "resourceVersion": "7", "generation": int64(2),
			"labels": map[string]any{"l": "1"}, "annotations": map[string]any{"a": "1", "odd key!": "kept"},
			"finalizers": []any{"f"},
		},
		"spec": map[string]any{"hostPort": "h:1", "n": int64(1), "f": 1.5, "html": "<&>"},
	}
}

const good = `{"apiVersion":"example.com/v2","kind":"CronTab","metadata":{"name":"a","namespace":"ns","uid":"u-1"},"spec":{"host":"h","port":1}}`

// wrap makes the answer that carries the given objects.
func wrap(version, uid, status string, objects ...string) string {
	return fmt.Sprintf(
		`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/%s","response":{"uid":"%s","result":%s,"convertedObjects":[%s]}}`, version, uid, status, strings.Join(objects, ","))
}

func TestReplies(t *testing.T) {
	ok := `{"status":"Success"}`
	answers := []string{
		``, ` `, `x`, `null`, `[]`, `{}`, `"text"`, `{`, `{"kind":"ConversionReview"}`,
		`{"apiVersion":"apiextensions.k8s.io/v1"}`,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no"}`,
		`{"kind":"Status","apiVersion":"v1","status":"Success"}`,
		`{"kind":"Pod","apiVersion":"v1"}`, `{"kind":"ConversionReview","apiVersion":"other/v1"}`,
		`{"kind":"Other","apiVersion":"apiextensions.k8s.io/v1"}`,
		`{"kind":"ConversionReview","apiVersion":"a/b/c"}`, `{"kind":7}`,
		`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":7}`,
		`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"convertedObjects":{}}}`,
		`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1"}`,
		`{"response":{"uid":"UID","result":{"status":"Success"},"convertedObjects":[` + good + `]}}`,
	}
	objects := []string{
		`null`, `{}`, `7`, `"x"`, `[]`, `{"kind":"CronTab"}`, `{"apiVersion":"example.com/v2"}`, good + `,` + good,
		`{"apiVersion":"v1","kind":"List","items":[]}`,
		`{"apiVersion":"example.com/v2","kind":"CronTabList","items":[` + good + `]}`,
	}
	for _, change := range [][2]string{
		{`"a"`, `"b"`}, {`"a"`, `7`}, {`"a"`, `null`}, {`"ns"`, `"other"`}, {`"u-1"`, `"u-2"`}, {`v2`, `v1`},
		{`v2`, `v3`}, {`example.com/v2`, `other/v2`}, {`CronTab`, `Other`}, {`"namespace":"ns",`, ``},
		{`"name":"a"`, `"name":"a","labels":{"x":"y"}`}, {`"name":"a"`, `"name":"a","labels":{"x":7}`},
		{`"name":"a"`, `"name":"a","labels":{"x!":"y"}`}, {`"name":"a"`, `"name":"a","labels":[]`},
		{`"name":"a"`, `"name":"a","labels":null`}, {`"name":"a"`, `"name":"a","labels":{"l":"1"}`},
		{`"name":"a"`, `"name":"a","annotations":{"x!":"y"}`},
		{`"name":"a"`, `"name":"a","annotations":{"a":"1","odd key!":"kept"}`},
		{`"name":"a"`, `"name":"a","annotations":{"a":"2","odd key!":"kept"}`},
		{`"name":"a"`, `"name":"a","finalizers":[],"resourceVersion":"8","generation":9`},
		{`"name":"a"`, `"name":"a","annotations":"x"`},
		{`{"name":"a","namespace":"ns","uid":"u-1"}`, `null`}, {`{"name":"a","namespace":"ns","uid":"u-1"}`, `7`},
		{`"metadata":{"name":"a","namespace":"ns","uid":"u-1"},`, ``},
		{`"port":1`, `"port":1.0,"big":12345678901234567890`},
	} {
		objects = append(objects, strings.Replace(good, change[0], change[1], 1))
	}
	for _, version := range []string{"v1", "v1beta1"} {
		all := append([]string{
			wrap(version, "UID", ok, good), wrap(version, "UID", ok), wrap(version, "other", ok, good),
			wrap(version, "", ok, good),
			wrap("v1", "UID", ok, good), wrap("v1beta1", "UID", ok, good), wrap("v2", "UID", ok, good),
			wrap(version, "UID", `{"status":"Failure","message":"no way"}`),
			wrap(version, "UID", `{"status":"Failure"}`), wrap(version, "UID", `{}`), wrap(version, "UID", `null`),
			wrap(version, "UID", `{"status":"Odd"}`),
			wrap(version, "UID", `{"status":7}`),
		}, answers...)
		for _, obj := range objects {
			all = append(all, wrap(version, "UID", ok, obj))
		}
		t.Run(version, func(t *testing.T) {
			p := newPair(t, "v7", version, "v1", "v1beta1")
			failed := 0
			for _, p.hook.answer = range all {
				if p.compare(t, sample()) {
					failed++
				}
			}
			for _, p.hook.code = range []int{201, 302, 400, 403, 404, 409, 418, 500, 503} {
				for _, p.hook.answer = range []string{"", "text", answers[10], answers[11]} {
					if p.compare(t, sample()) {
						failed++
					}
				}
			}
			if failed < 50 || failed > len(all)+36-8 {
				t.Errorf("%d of %d answers failed", failed, len(all)+36)
			}
		})
	}
	t.Run("no version in common", func(t *testing.T) {
		newPair(t, "v7").compare(t, sample())
	})
}

// TestRandomReplies damages a good answer in random places.
func TestRandomReplies(t *testing.T) {
	p := newPair(t, "v1")
	random := rand.New(rand.NewPCG(1, 2))
	whole := wrap("v1", "UID", `{"status":"Success"}`,
		strings.Replace(good, `"name":"a"`, `"name":"a","labels":{"l":"1","x":"y"},"annotations":{"a":"1"}`, 1))
	pieces := []string{`"`, `{`, `}`, `[`, `]`, `,`, `null`, `7`, `"x"`, `{}`, `[]`, ``, `:`, `true`}
	failed := 0
	for range 3000 {
		at := random.IntN(len(whole))
		end := min(at+random.IntN(12), len(whole))
		p.hook.answer = whole[:at] + pieces[random.IntN(len(pieces))] + whole[end:]
		if p.compare(t, sample()) {
			failed++
		}
		if t.Failed() {
			return
		}
	}
	if failed < 1000 {
		t.Errorf("only %d failed", failed)
	}
}

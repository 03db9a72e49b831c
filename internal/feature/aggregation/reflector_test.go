package aggregation_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// overheard records a client's requests.
type overheard struct {
	http.RoundTripper
	initial *atomic.Int64 // watches with initial events
}

func (o overheard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		o.initial.Add(1)
	}
	return o.RoundTripper.RoundTrip(r)
}

// TestReflector runs an informer of client-go on a server that lists and watches without bookmarks: the informer
// requests a watch with initial events, is filled although the server does not mark their end, and continues after the
// server has ended the watch.
func TestReflector(t *testing.T) {
	c := start(t)
	const object = `{"apiVersion":"` + group + `/v1","kind":"Flunder","metadata":{"name":%q,"namespace":"default",
		"resourceVersion":%q}}`
	events, watches := make(chan string), make(chan string, 10)
	b := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") != "" {
			t.Errorf("the server is asked for %s", r.URL.RawQuery)
		}
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, `{"kind":"FlunderList","apiVersion":"`+group+`/v1","metadata":{"resourceVersion":"7"},
				"items":[`+fmt.Sprintf(object, "a", "5")+`,`+fmt.Sprintf(object, "b", "7")+`]}`)
			return
		}
		watches <- r.URL.Query().Get("resourceVersion")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case event := <-events:
				if event == "" {
					return
				}
				_, _ = io.WriteString(w, event+"\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	c.service()
	c.register(b, "")
	c.available()

	var initial atomic.Int64
	config := rest.CopyConfig(c.config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return overheard{rt, &initial} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client,
		schema.GroupVersionResource{Group: group, Version: "v1", Resource: "flunders"}, metav1.NamespaceAll, 0,
		cache.Indexers{}, nil).Informer()
	names := make(chan string, 10)
	note := func(desc string) func(any) {
		return func(obj any) { names <- desc + " " + obj.(*unstructured.Unstructured).GetName() }
	}
	added := note("added")
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: added, DeleteFunc: note("deleted"),
		UpdateFunc: func(_, now any) { note("changed")(now) }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	next := func() string {
		t.Helper()
		select {
		case name := <-names:
			return name
		case <-ctx.Done():
			t.Fatal("the informer hears of nothing")
			return ""
		}
	}
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not fill")
	}
	if initial.Load() == 0 {
		t.Error("client-go has not asked for a watch that begins with what is there: the test shows nothing")
	}
	first := []string{next(), next()}
	slices.Sort(first)
	if got := strings.Join(first, ", "); got != "added a, added b" {
		t.Errorf("it begins with %s", got)
	}
	send := func(kind, name, version, want string) {
		t.Helper()
		events <- `{"type":"` + kind + `","object":` +
			strings.Join(strings.Fields(fmt.Sprintf(object, name, version)), "") + `}`
		if got := next(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	send("ADDED", "c", "8", "added c")
	send("MODIFIED", "a", "9", "changed a")
	events <- "" // the server ends the watch
	send("DELETED", "b", "10", "deleted b")
	if from := <-watches + " " + <-watches; from != "7 9" {
		t.Errorf("watches begin at %s", from)
	}
}

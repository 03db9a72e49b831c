package bowsprit_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

func TestRequestTimeouts(t *testing.T) {
	server := testserver.Start(t,
		func(c *bowsprit.Config) {
			c.Limits.RequestTimeout, c.Limits.MinRequestTimeout = time.Nanosecond, time.Nanosecond
		})
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsTimeout(err) {
		t.Errorf("list: %v", err)
	}
	// any revision of the view will do, so the watch does not wait
	w, err := client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	for range w.ResultChan() { // ends by itself
	}
}

// TestMutatingRequestsInFlight checks that a second write is refused while the first waits for its body.
func TestMutatingRequestsInFlight(t *testing.T) {
	tokens := tokenFile(t, "secret,eve,1")
	server := testserver.Start(t, func(c *bowsprit.Config) {
		// system:masters would not be limited, and with priority and fairness the second would wait
		c.Limits.PriorityAndFairness = new(bool)
		c.Limits.MaxMutatingRequestsInFlight, c.Authentication.TokenAuthFile = 1, tokens
		c.Authorization.Modes = []string{"AlwaysAllow"}
	})
	config := rest.AnonymousClientConfig(server.RESTConfig())
	config.BearerToken = "secret"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	post := func(trace *httptrace.ClientTrace, body io.Reader) (int, error) {
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost,
			server.URL()+"/api/v1/namespaces/default/configmaps", body)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Expect", "100-continue")
		resp, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	body, end := io.Pipe()
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if code, err := post(&httptrace.ClientTrace{Got100Continue: func() { close(begun) }}, body); err != nil ||
			code != http.StatusCreated {
			t.Errorf("first: %d, %v", code, err)
		}
	}()
	select {
	case <-begun:
	case <-done:
		return
	}
	if code, err := post(&httptrace.ClientTrace{}, http.NoBody); err != nil || code != http.StatusTooManyRequests {
		t.Errorf("second: %d, %v", code, err)
	}
	if _, err := io.WriteString(end, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`); err != nil {
		t.Error(err)
	}
	end.Close()
	<-done
}

func TestTolerationSeconds(t *testing.T) {
	server := testserver.Start(t, func(c *bowsprit.Config) { c.Limits.NotReadyTolerationSeconds = new(int64(7)) })
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if list := pod.Spec.Tolerations; len(list) != 2 || *list[0].TolerationSeconds != 7 ||
		*list[1].TolerationSeconds != 300 {
		t.Errorf("tolerations %+v", list)
	}
}

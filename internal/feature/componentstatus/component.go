// Package componentstatus finds out how the processes of a cluster are: the objects of kind ComponentStatus, which are
// not stored but made at each read.
//
// It stands behind package verb, which asks for them as a verb.Finder. The components and their addresses are
// kube-apiserver's: the store, and a controller manager and a scheduler on this machine, whether there are any or not.
// Rules: pkg/registry/core/componentstatus and pkg/probe of Kubernetes 1.36.
package componentstatus

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/foreign"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// timeout of a look at a component.
const timeout = 20 * time.Second

// Config is what Find works with.
type Config struct {
	// Store reports whether the store answers.
	Store func(context.Context) error
	// ControllerManager and Scheduler are where they say that they are well, where they usually are if empty.
	ControllerManager, Scheduler string
}

// component is one that can be looked at.
type component struct {
	name string
	look func(context.Context) corev1.ComponentCondition
}

// Find returns the statuses of components, in the order of their names.
func Find(c Config) verb.Finder {
	if c.ControllerManager == "" {
		c.ControllerManager = "https://127.0.0.1:10257/healthz"
	}
	if c.Scheduler == "" {
		c.Scheduler = "https://127.0.0.1:10259/healthz"
	}
	client := newClient()
	all := []component{
		{"controller-manager",
			func(ctx context.Context) corev1.ComponentCondition { return probe(ctx, client, c.ControllerManager) }},
		{"etcd-0", func(ctx context.Context) corev1.ComponentCondition { return answer(ctx, c.Store) }},
		{"scheduler", func(ctx context.Context) corev1.ComponentCondition { return probe(ctx, client, c.Scheduler) }},
	}
	return func(ctx context.Context, _, name string) ([]object.Object, error) {
		if name == "" {
			return statuses(ctx, all), nil
		}
		for i := range all {
			if all[i].name == name {
				return statuses(ctx, all[i:i+1]), nil
			}
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "componentstatus"}, name) // kube's word for it
	}
}

// statuses looks at all components at once.
func statuses(ctx context.Context, of []component) []object.Object {
	out := make([]object.Object, len(of))
	var wg sync.WaitGroup
	for i, c := range of {
		wg.Go(func() { out[i] = statusOf(c.name, c.look(ctx)) })
	}
	wg.Wait()
	return out
}

func statusOf(name string, c corev1.ComponentCondition) object.Object {
	condition := object.Object{"type": string(corev1.ComponentHealthy), "status": string(c.Status)}
	if c.Message != "" {
		condition["message"] = c.Message
	}
	if c.Error != "" {
		condition["error"] = c.Error
	}
	return object.Object{"metadata": object.Object{"name": name}, "conditions": []any{condition}}
}

// answer is the condition of the store.
func answer(ctx context.Context, check func(context.Context) error) corev1.ComponentCondition {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := check(ctx); err != nil {
		return corev1.ComponentCondition{
			Status: corev1.ConditionFalse, Error: fmt.Sprintf("error getting data from etcd: %v", err),
		}
	}
	return corev1.ComponentCondition{Status: corev1.ConditionTrue, Message: "ok"}
}

// probe is the condition of a component that says it by HTTPS. As for a kubelet's probe, any server may answer: it is
// trusted with nothing.
func probe(ctx context.Context, client *http.Client, url string) corev1.ComponentCondition {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return corev1.ComponentCondition{
			Status: corev1.ConditionUnknown, Error: fmt.Sprintf("failed to construct probe request: %v", err),
		}
	}
	r.Header.Set("User-Agent", "kube-probe/1.36")
	r.Header.Set("Accept", "*/*")
	res, err := client.Do(r)
	if err != nil {
		return corev1.ComponentCondition{Status: corev1.ConditionFalse, Message: foreign.Text(err.Error())}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return corev1.ComponentCondition{Status: corev1.ConditionUnknown, Error: foreign.Text(err.Error())}
	case res.StatusCode < http.StatusOK || res.StatusCode >= http.StatusBadRequest:
		return corev1.ComponentCondition{
			Status:  corev1.ConditionFalse,
			Message: fmt.Sprintf("HTTP probe failed with statuscode: %d", res.StatusCode),
		}
	case res.StatusCode >= http.StatusMultipleChoices:
		return corev1.ComponentCondition{
			Status:  corev1.ConditionUnknown,
			Message: fmt.Sprintf("Probe terminated redirects, Response body: %s", body),
		}
	}
	return corev1.ComponentCondition{Status: corev1.ConditionTrue, Message: string(body)}
}

// maxAnswer is how much of an answer becomes the message.
const maxAnswer = 10 << 10

// newClient returns a client that keeps no connections.
func newClient() *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		DialContext:        (&net.Dialer{}).DialContext,
		DisableKeepAlives:  true,
		DisableCompression: true,
		ForceAttemptHTTP2:  true,

		MaxResponseHeaderBytes: foreign.MaxHeader,
	}}
}

// Package componentstatus checks the health of the processes of a cluster: the objects of kind ComponentStatus, which
// are computed at each read and not stored.
//
// It is a verb.Finder. The components and their addresses are kube-apiserver's: the store, and a controller manager and
// a scheduler on this machine, whether or not they exist. Source: pkg/registry/core/componentstatus and pkg/probe of
// Kubernetes 1.36.
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

	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// timeout of a look at a component.
const timeout = 20 * time.Second

// Config configures Find.
type Config struct {
	// Store checks whether the store answers.
	Store func(context.Context) error
	// ControllerManager and Scheduler are their health URLs; "" means the usual ones.
	ControllerManager, Scheduler string
}

// component is a component with its check.
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
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "componentstatus"}, name) // as in Kubernetes
	}
}

// statuses checks all components concurrently.
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

// answer returns the condition of the store.
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

// probe returns the condition of a component with an HTTPS health check. As in a kubelet's probe the server certificate
// is not verified: nothing secret is sent.
func probe(ctx context.Context, client *http.Client, url string) corev1.ComponentCondition {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return corev1.ComponentCondition{
			Status: corev1.ConditionUnknown, Error: fmt.Sprintf("failed to construct probe request: %v", err),
		}
	}
	r.Header.Set("User-Agent", "kube-probe/1.37")
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

// maxAnswer bounds the part of a response that becomes the message.
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

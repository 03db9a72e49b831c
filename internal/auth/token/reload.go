package token

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

const (
	// lookEvery is the interval for checking the file. kube-apiserver receives file system events, and also checks each
	// minute.
	lookEvery = 2 * time.Second
	// retryEvery is the interval for retrying unreachable issuers.
	retryEvery = time.Minute
	// retireAfter is how long a replaced set may finish its requests, and forgetAfter when the metrics of removed
	// issuers are dropped, as in Kubernetes.
	retireAfter = time.Minute
	forgetAfter = retireAfter + 30*time.Second
)

// Run reads the file again when it has changed, until ctx ends. Without a file it returns at once.
func (r *Remote) Run(ctx context.Context) {
	if r.config.File != "" {
		wait.UntilWithContext(ctx, r.Reload, lookEvery)
	}
}

// Reload checks the file, and applies changes. An invalid file is logged, and the previous configuration stays. Reload
// waits up to a minute for new issuers.
func (r *Remote) Reload(ctx context.Context) {
	r.reload.Lock()
	defer r.reload.Unlock()
	data, err := os.ReadFile(r.config.File)
	if err != nil {
		if r.now().Before(r.reload.complainAt) {
			return
		}
		r.reload.complainAt = r.now().Add(retryEvery)
		r.failed("cannot read the authentication configuration; the previous one stays in force", err)
		return
	}
	r.reload.complainAt = time.Time{}
	content := string(data)
	if content == r.reload.seen || content == r.reload.failed && r.now().Before(r.reload.retryAt) {
		return
	}
	configuration, err := r.usable(data)
	if err != nil {
		r.reload.seen = content // it will never be valid
		r.failed("the authentication configuration is not valid; the previous one stays in force", err)
		return
	}
	if err := r.replace(ctx, configuration); err != nil {
		r.reload.failed, r.reload.retryAt = content, r.now().Add(retryEvery)
		r.failed("the new authentication configuration cannot take effect yet; retried in a minute",
			err)
		return
	}
	r.reload.seen = content
	r.metrics.reloaded(true, r.now())
	r.metrics.applied(content)
	r.config.Log.Info("authentication configuration reloaded", "file", r.config.File)
}

func (r *Remote) failed(text string, err error) {
	r.metrics.reloaded(false, r.now())
	r.config.Log.Error(text, "file", r.config.File, "error", err)
}

// usable returns the configuration if it can be put into force.
func (r *Remote) usable(data []byte) (*apiserver.AuthenticationConfiguration, error) {
	c, err := decode(data)
	if err != nil {
		return nil, err
	}
	err = r.validate(c)
	if !reflect.DeepEqual(r.anonymous, c.Anonymous) {
		err = errors.Join(err, field.Forbidden(field.NewPath("anonymous"), "changed from initial configuration file"))
	}
	if err != nil {
		return nil, fmt.Errorf("invalid authentication configuration: %w", err)
	}
	return c, nil
}

// replace activates the issuers of c as soon as all are ready.
func (r *Remote) replace(ctx context.Context, c *apiserver.AuthenticationConfiguration) error {
	next, err := r.newIssuers(c)
	if err != nil {
		return err
	}
	if err := r.health.wait(ctx, next); err != nil {
		next.cancel()
		return err
	}
	old := r.issuers.Swap(next)
	r.timers.after(retireAfter, old.cancel)
	for _, url := range old.urls {
		if slices.Contains(next.urls, url) {
			continue
		}
		r.timers.after(forgetAfter, func() {
			if !slices.Contains(r.issuers.Load().urls, url) {
				oidc.DeleteJWKSFetchMetrics(url, r.config.ServerID)
			}
		})
	}
	return nil
}

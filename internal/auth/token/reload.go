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
	// lookEvery is how often the file is looked at. kube-apiserver is told of changes by the file system, and looks
	// each minute besides.
	lookEvery = 2 * time.Second
	// retryEvery is when issuers that could not be reached are tried again.
	retryEvery = time.Minute
	// retireAfter is how long a set that was replaced may go on with what it was asked, and forgetAfter when the
	// metrics of issuers that are gone go: kube's.
	retireAfter = time.Minute
	forgetAfter = retireAfter + 30*time.Second
)

// Run reads the file again when it has changed, until ctx ends. Without a file it returns at once.
func (r *Remote) Run(ctx context.Context) {
	if r.config.File != "" {
		wait.UntilWithContext(ctx, r.Reload, lookEvery)
	}
}

// Reload looks at the file, and puts what has changed into force. A file that cannot be used is logged, and what was
// in force stays. It waits up to a minute for new issuers.
func (r *Remote) Reload(ctx context.Context) {
	r.reload.Lock()
	defer r.reload.Unlock()
	data, err := os.ReadFile(r.config.File)
	if err != nil {
		if r.now().Before(r.reload.complainAt) {
			return
		}
		r.reload.complainAt = r.now().Add(retryEvery)
		r.failed("cannot read the authentication configuration; the one before stays in force", err)
		return
	}
	r.reload.complainAt = time.Time{}
	content := string(data)
	if content == r.reload.seen || content == r.reload.failed && r.now().Before(r.reload.retryAt) {
		return
	}
	configuration, err := r.usable(data)
	if err != nil {
		r.reload.seen = content // it will never be
		r.failed("the authentication configuration is not valid; the one before stays in force", err)
		return
	}
	if err := r.replace(ctx, configuration); err != nil {
		r.reload.failed, r.reload.retryAt = content, r.now().Add(retryEvery)
		r.failed("the new authentication configuration cannot be put into force yet; it is tried again in a minute",
			err)
		return
	}
	r.reload.seen = content
	r.metrics.reloaded(true, r.now())
	r.metrics.applied(content)
	r.config.Log.Info("read the authentication configuration again", "file", r.config.File)
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

// replace puts the issuers of c into force as soon as all can be asked.
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

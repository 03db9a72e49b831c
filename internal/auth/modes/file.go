package modes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
)

const (
	// lookEvery is the interval for checking the file. kube-apiserver receives file system events, and also checks each
	// minute.
	lookEvery = 2 * time.Second
	// complainEvery is the interval for logging and counting a missing file.
	complainEvery = time.Minute
)

// load reads the file and returns its content and the valid configuration in it.
func (m *Modes) load() (string, *apiserver.AuthorizationConfiguration, error) {
	data, err := os.ReadFile(m.config.File)
	if err != nil {
		return "", nil, err
	}
	c, err := m.usable(data)
	return string(data), c, err
}

// usable returns the configuration in data if it is valid. The checks and texts are kube-apiserver's.
func (m *Modes) usable(data []byte) (*apiserver.AuthorizationConfiguration, error) {
	c, err := load.LoadFromData(data)
	if err != nil {
		return nil, fmt.Errorf("failed to load AuthorizationConfiguration from file: %w", err)
	}
	errs := validation.ValidateAuthorizationConfiguration(m.compiler, nil, c, sets.New(All()...), sets.New(Webhook))
	if err := errs.ToAggregate(); err != nil {
		return nil, err
	}
	var wrong []error
	seen := sets.New[apiserver.AuthorizerType]()
	for _, one := range c.Authorizers {
		if one.Type == Webhook {
			continue
		}
		seen.Insert(one.Type)
		if want := strings.ToLower(string(one.Type)); one.Name != want {
			wrong = append(wrong, fmt.Errorf("expected name %s for authorizer %s instead of %s", want, one.Type, one.Name))
		}
	}
	if missing := sets.New(m.required...).Difference(seen); missing.Len() > 0 {
		wrong = append(wrong, fmt.Errorf("missing required types: %v", sets.List(missing)))
	}
	return c, errors.Join(wrong...)
}

// Run reads the file again when it has changed, until ctx ends. Without a file it returns at once.
func (m *Modes) Run(ctx context.Context) {
	if m.config.File != "" {
		wait.UntilWithContext(ctx, func(context.Context) { m.Reload() }, lookEvery)
	}
}

// Reload checks the file and applies changes. An invalid file is logged, and the previous configuration stays.
func (m *Modes) Reload() {
	m.reload.Lock()
	defer m.reload.Unlock()
	data, err := os.ReadFile(m.config.File)
	switch {
	case err != nil && m.config.Now().Before(m.reload.complainAt):
		return
	case err != nil:
		m.reload.complainAt = m.config.Now().Add(complainEvery)
	default:
		m.reload.complainAt = time.Time{}
		if string(data) == m.reload.seen {
			return
		}
		m.reload.seen = string(data)
		err = m.replaceLocked(data)
	}
	if err != nil {
		m.metrics.reloaded(false, m.config.Now())
		m.config.Log.Error("cannot use the authorization configuration; the previous one stays in force",
			"file", m.config.File, "error", err)
	}
}

func (m *Modes) replaceLocked(data []byte) error {
	c, err := m.usable(data)
	if err != nil || reflect.DeepEqual(c, m.reload.last) {
		return err
	}
	m.reload.last = c // even if building fails, as in kube-apiserver: going back is then a change
	union, err := m.build(c)
	if err != nil {
		return err
	}
	m.current.Store(&union)
	m.metrics.reloaded(true, m.config.Now())
	m.metrics.applied(string(data))
	m.config.Log.Info("authorization configuration reloaded", "file", m.config.File)
	return nil
}

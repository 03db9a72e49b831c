package encrypt

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	encryptionmetrics "k8s.io/apiserver/pkg/server/options/encryptionconfig/metrics"
)

const (
	// reloadInterval is how often the file is looked at. Kubernetes does it each minute.
	reloadInterval = 10 * time.Second
	// healthyWithin is the least time that new plugins have to become healthy before the old configuration is replaced.
	healthyWithin = 10 * time.Second
	// healthyEvery is the interval of their health checks meanwhile.
	healthyEvery = 100 * time.Millisecond
)

// Run reloads a changed file until ctx ends, see Reload.
func (e *Encryption) Run(ctx context.Context, changed func(ctx context.Context, concerned func(prefix string) bool)) {
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()
	refused := "" // the last logged error
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := e.Reload(ctx, changed)
		if err == nil {
			refused = ""
			continue
		}
		if text := err.Error(); text != refused && ctx.Err() == nil {
			refused = text
			e.config.Log.Error("new encryption configuration refused, the old one stays in force; retried every 10 "+
				"seconds", "file", e.config.File, "error", err)
		}
	}
}

// Reload reads the file. If it has changed and its plugins are healthy, it applies the new state and then calls
// changed. Its argument reports whether objects below a prefix are now decrypted differently. Otherwise Reload changes
// nothing.
func (e *Encryption) Reload(
	ctx context.Context, changed func(ctx context.Context, concerned func(prefix string) bool),
) error {
	hash, err := encryptionconfig.GetEncryptionConfigHash(e.config.File)
	if err == nil && hash == e.current.Load().hash {
		return nil
	}
	var old *providers
	if err == nil {
		old, err = e.replace(ctx)
	}
	if err != nil {
		encryptionmetrics.RecordEncryptionConfigAutomaticReloadFailure(e.config.Server)
		return err
	}
	now := e.current.Load()
	encryptionmetrics.RecordEncryptionConfigAutomaticReloadSuccess(e.config.Server, now.hash)
	e.config.Log.Info("new encryption configuration in force; stored objects are read again, and re-encrypted at their "+
		"next write", "file", e.config.File)
	changed(ctx, func(prefix string) bool { return e.reads(old, prefix) || e.reads(now, prefix) })
	return nil
}

// reads reports whether a state of the file names a provider for objects below a prefix: their own, or their
// substitute's if they have sensitive fields.
func (e *Encryption) reads(p *providers, prefix string) bool {
	if e.transformer(p, prefix) != nil {
		return true
	}
	instead := e.Instead(prefix)
	return instead != "" && e.transformer(p, instead) != nil
}

// replace applies the file's new state and returns the old one, which callers may still be using.
func (e *Encryption) replace(ctx context.Context) (old *providers, err error) {
	now, err := e.load()
	if err != nil {
		return nil, err
	}
	if err := now.healthy(ctx); err != nil {
		now.end()
		return nil, err
	}
	old = e.current.Swap(now)
	time.AfterFunc(old.grace, old.end)
	e.outages.Clear()
	return old, nil
}

// healthy waits until the plugins are healthy.
func (p *providers) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(healthyWithin, p.grace))
	defer cancel()
	tick := time.NewTicker(healthyEvery)
	defer tick.Stop()
	for {
		var err error
		for _, c := range p.checks {
			if err = check(ctx, c); err != nil {
				break
			}
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("health check for new transformers failed: %w", err)
		}
	}
}

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
	// healthyWithin is how long new plugins have at least to be healthy before the old configuration goes.
	healthyWithin = 10 * time.Second
	// healthyEvery is how often they are asked meanwhile.
	healthyEvery = 100 * time.Millisecond
)

// Run looks for changes of the file until ctx ends, see Reload.
func (e *Encryption) Run(ctx context.Context, changed func(ctx context.Context, concerned func(prefix string) bool)) {
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()
	refused := "" // what was said last of a file that is refused
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
			e.config.Log.Error("new encryption configuration refused, the old one stays in force; tried again every 10 "+
				"seconds", "file", e.config.File, "error", err)
		}
	}
}

// Reload looks at the file. If it has changed, and its plugins answer, its new state is in force when changed is called
// with what reports whether the objects below a prefix are read otherwise now. Else nothing changes.
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
	e.config.Log.Info("new encryption configuration in force; what is stored is read again, and encrypted anew when it "+
		"is written", "file", e.config.File)
	changed(ctx, func(prefix string) bool { return e.reads(old, prefix) || e.reads(now, prefix) })
	return nil
}

// reads reports whether a state of the file says how objects below a prefix are read: by what it says of them, or of
// those as which they are encrypted if they have sensitive fields.
func (e *Encryption) reads(p *providers, prefix string) bool {
	if e.transformer(p, prefix) != nil {
		return true
	}
	instead := e.Instead(prefix)
	return instead != "" && e.transformer(p, instead) != nil
}

// replace puts the file's new state into force and returns the old one. What uses that still has time to finish.
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

// healthy waits until the plugins answer.
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

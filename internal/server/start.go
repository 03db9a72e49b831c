package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/parts"
)

// prepared is a server before its start: the configuration, the parts, and the interface of the core for parts.
type prepared struct {
	config config.Config
	log    *slog.Logger
	parts  []part.Part
	host   part.Host // each phase fills its fields, in their order
	life

	// behind holds the dependencies of an extension API server on the server in front of it, or nil for all other
	// servers.
	behind *part.Behind
}

// prepare returns a server with these parts. c has all defaults.
func prepare(c config.Config, all []part.Part) *prepared {
	clock := c.Clock
	if clock == nil {
		clock = part.MachineClock{}
	}
	p := &prepared{
		config: c, log: c.Log, parts: all, behind: parts.Behind(&c), life: life{broken: make(chan error, 1)},
	}
	p.host = part.Host{
		Log: c.Log, Started: time.Now(), Now: clock.Now, AfterFunc: clock.AfterFunc, NewUID: uuid.NewString,
		Runs:    func(controller string) bool { return config.Runs(&c.Controllers, controller) },
		Metrics: prometheus.NewRegistry(), Egress: &egress.Egress{},
		Background: p.background, OnStop: p.onStop,
	}
	return p
}

// start runs the phases of the start. Each receives the result of the phase before it, and registers its reversal with
// onStop. After an error, stop undoes the finished steps.
func (p *prepared) start(ctx context.Context) (*running, error) {
	opened, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	built, err := opened.build(ctx)
	if err != nil {
		return nil, err
	}
	loaded, err := built.load(ctx)
	if err != nil {
		return nil, err
	}
	return loaded.run(), nil
}

// step is a part of a phase.
type step = func(context.Context) error

// inOrder takes the steps until one fails.
func inOrder(ctx context.Context, steps ...step) error {
	for _, s := range steps {
		if err := s(ctx); err != nil {
			return err
		}
	}
	return nil
}

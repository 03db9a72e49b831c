package server

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/tracing"
	"github.com/bowsprit/bowsprit/internal/request"
)

// observeStore counts an operation of the store, and the time that it has taken of a request.
func (p *process) observeStore(ctx context.Context, operation, key string, took time.Duration, err error) {
	request.Spend(ctx, request.Storage, took)
	p.requests.Observe(operation, key, took, err)
}

// openEgress makes the dialer for connections to other servers, if a file configures it.
func (p *process) openEgress(context.Context) error {
	file := p.config.Egress.ConfigFile
	if file == "" {
		return nil
	}
	c, err := egress.Read(file)
	if err == nil {
		p.host.Egress, err = egress.Open(c, p.host.Metrics)
	}
	if err != nil {
		return fmt.Errorf("--egress-selector-config-file: %w: correct the file, or the flag that names it", err)
	}
	p.onStop(p.host.Egress.Close)
	return nil
}

// openTracing makes the trace provider. It stops after everything traced, and then sends the remaining spans.
func (p *process) openTracing(ctx context.Context) error {
	file := p.config.Observability.TracingConfigFile
	if file == "" {
		return nil
	}
	c, err := tracing.Read(file)
	if err == nil {
		p.traces, err = tracing.Open(ctx, c, "apiserver-"+uuid.NewString(),
			p.host.Egress.Selected(egress.ControlPlane), p.log)
	}
	if err != nil {
		return fmt.Errorf("--tracing-config-file: %w: correct the file, or the flag that names it", err)
	}
	p.onStop(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), p.config.ShutdownTimeout)
		defer cancel()
		if err := p.traces.Shutdown(ctx); err != nil {
			p.log.Warn("the last traces could not be sent to the collector; they are lost", "error", err)
		}
		return nil
	})
	return nil
}

// tracer begins the spans of requests, or is nil without tracing.
func (p *process) tracer() trace.Tracer {
	if p.traces == nil {
		return nil
	}
	return p.traces.Tracer("github.com/bowsprit/bowsprit")
}

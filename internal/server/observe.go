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
func (o *opened) observeStore(ctx context.Context, operation, key string, took time.Duration, err error) {
	request.Spend(ctx, request.Storage, took)
	o.requests.Observe(operation, key, took, err)
}

// openEgress makes the dialer for connections to other servers, if a file configures it.
func (o *opened) openEgress(context.Context) error {
	file := o.config.Egress.ConfigFile
	if file == "" {
		return nil
	}
	c, err := egress.Read(file)
	if err == nil {
		o.host.Egress, err = egress.Open(c, o.host.Metrics)
	}
	if err != nil {
		return fmt.Errorf("--egress-selector-config-file: %w: correct the file, or the flag that names it", err)
	}
	o.onStop(o.host.Egress.Close)
	return nil
}

// openTracing makes the trace provider. It stops after everything traced, and then sends the remaining spans.
func (o *opened) openTracing(ctx context.Context) error {
	file := o.config.Observability.TracingConfigFile
	if file == "" {
		return nil
	}
	c, err := tracing.Read(file)
	if err == nil {
		o.traces, err = tracing.Open(ctx, c, "apiserver-"+uuid.NewString(),
			o.host.Egress.Selected(egress.ControlPlane), o.log)
	}
	if err != nil {
		return fmt.Errorf("--tracing-config-file: %w: correct the file, or the flag that names it", err)
	}
	o.onStop(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), o.config.ShutdownTimeout)
		defer cancel()
		if err := o.traces.Shutdown(ctx); err != nil {
			o.log.Warn("the last traces could not be sent to the collector; they are lost", "error", err)
		}
		return nil
	})
	return nil
}

// tracer begins the spans of requests, or is nil without tracing.
func (o *opened) tracer() trace.Tracer {
	if o.traces == nil {
		return nil
	}
	return o.traces.Tracer("github.com/bowsprit/bowsprit")
}

// Package tracing sends OpenTelemetry traces to a collector, by a TracingConfiguration (--tracing-config-file of
// kube-apiserver).
//
// It creates the one provider of a process; other packages begin spans with request.StartSpan. A request is traced if a
// trusted caller requests it (front/chain), or at random, with the configured rate. Finished spans are collected in the
// background and sent in batches over gRPC; spans that a slow collector does not accept in time are dropped, and no
// request waits for it. A Provider is safe for concurrent use.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/net/egress"
)

// Config is a TracingConfiguration of apiserver.config.k8s.io.
type Config struct {
	metav1.TypeMeta                 `json:",inline"`
	tracingapi.TracingConfiguration `json:",inline"`
}

// Read reads and checks a TracingConfiguration.
func Read(file string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("unable to read tracing configuration from %q: %w", file, err)
	}
	c := &Config{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, fmt.Errorf("unable to decode tracing configuration data: %w", err)
	}
	switch c.APIVersion {
	case "apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1":
	default:
		return nil, fmt.Errorf("unable to decode tracing configuration data: no kind %q is registered for version %q",
			c.Kind, c.APIVersion)
	}
	if c.Kind != "TracingConfiguration" {
		return nil, fmt.Errorf("unable to decode tracing configuration data: no kind %q is registered for version %q",
			c.Kind, c.APIVersion)
	}
	if errs := tracingapi.ValidateTracingConfiguration(&c.TracingConfiguration, nil, nil); len(errs) > 0 {
		return nil, fmt.Errorf("failed to validate tracing configuration: %w", errs.ToAggregate())
	}
	return c, nil
}

// Provider provides tracers that send their spans to a collector.
type Provider struct {
	*sdktrace.TracerProvider
}

var _ trace.TracerProvider = (*Provider)(nil)

// Open returns a provider. instance identifies this server, dial opens connections to the collector (nil: the library
// does). Open does not wait for the collector.
//
// The library has one error handler for a process, which logs to log from then on.
func Open(
	ctx context.Context, c *Config, instance string, dial egress.Dial, log *slog.Logger,
) (*Provider, error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("traces could not be sent to the collector; the batch is lost", "error", err)
	}))
	options := []otlptracegrpc.Option{otlptracegrpc.WithInsecure()} // as in Kubernetes: a collector beside the server
	if c.Endpoint != nil {
		options = append(options, otlptracegrpc.WithEndpoint(*c.Endpoint))
	}
	if dial != nil {
		options = append(options, otlptracegrpc.WithDialOption(
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return dial(ctx, "tcp", address)
			})))
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, err
	}
	sampler := sdktrace.NeverSample()
	if rate := c.SamplingRatePerMillion; rate != nil && *rate > 0 {
		sampler = sdktrace.TraceIDRatioBased(float64(*rate) / 1e6)
	}
	return &Provider{sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "apiserver"), attribute.String("service.instance.id", instance))),
	)}, nil
}

package serviceaccount

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// externalMetrics counts requests to the program, with Kubernetes' names and labels.
type externalMetrics struct {
	succeeded, data prometheus.Gauge
	fetches, signs  *prometheus.CounterVec
	durations       *prometheus.HistogramVec
}

func newExternalMetrics(registry prometheus.Registerer) *externalMetrics {
	const namespace, subsystem = "apiserver", "externaljwt"
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(
			prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help})
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(
			prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help},
			[]string{"code"})
	}
	m := &externalMetrics{
		succeeded: gauge("fetch_keys_success_timestamp",
			"Unix Timestamp in seconds of the last successful FetchKeys request"),
		data: gauge("fetch_keys_data_timestamp",
			"Unix Timestamp in seconds of the last successful FetchKeys data_timestamp value returned by the external signer"),
		fetches: counter("fetch_keys_request_total", "Total attempts at syncing supported JWKs"),
		signs:   counter("sign_request_total", "Total attempts at signing JWT"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "request_duration_seconds",
			Help:    "Request duration and time for calls to external-jwt-signer",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"method", "code"}),
	}
	if registry != nil {
		registry.MustRegister(m.succeeded, m.data, m.fetches, m.signs, m.durations)
	}
	return m
}

// measure returns an interceptor of calls.
func (m *externalMetrics) measure() grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, answer any, connection *grpc.ClientConn, call grpc.UnaryInvoker,
		options ...grpc.CallOption,
	) error {
		began := time.Now()
		err := call(ctx, method, request, answer, connection, options...)
		m.durations.WithLabelValues(method, codeOf(err)).Observe(time.Since(began).Seconds())
		return err
	}
}

func (m *externalMetrics) fetched(err error) {
	m.fetches.WithLabelValues(codeOf(err)).Inc()
	if err == nil {
		m.succeeded.SetToCurrentTime()
	}
}

func (m *externalMetrics) dated(at time.Time) {
	m.data.Set(float64(at.UnixNano()) / float64(time.Second))
}

func (m *externalMetrics) signed(err error) { m.signs.WithLabelValues(codeOf(err)).Inc() }

// codeOf returns gRPC's name of a call's result.
func codeOf(err error) string {
	if err == nil {
		return codes.OK.String()
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Code().String()
	}
	return "unknown-non-grpc"
}

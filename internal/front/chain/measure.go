package chain

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// slowRequest is from when on a request is logged as slow, as Kubernetes logs its trace.
const slowRequest = 500 * time.Millisecond

// measure counts the request and writes it to the log.
func (c *Chain) measure(x *exchange, next func(*exchange)) {
	x.labels = c.labels(x)
	if x.longRunning {
		c.running(x).Inc()
	}
	x.aborted = true
	defer x.end(c.measured)
	next(x)
	x.aborted = false
}

// running returns the number of long-running requests like x.
func (c *Chain) running(x *exchange) prometheus.Gauge {
	key := &x.labels
	return c.metrics.longRunning.WithLabelValues(key.verb, key.group, key.version, key.resource, key.subresource,
		key.scope, component)
}

// measured counts the end of the request and writes it to the log.
func (c *Chain) measured(x *exchange) {
	key := x.labels
	if x.aborted {
		c.metrics.aborted.WithLabelValues(key.verb, key.group, key.version, key.resource, key.subresource,
			key.scope).Inc()
	}
	key.code = x.code
	if key.code == 0 {
		key.code = http.StatusOK // the code of net/http for a handler without a response
	}
	took := x.took
	if took == 0 {
		took = c.since(x.started)
	}
	c.metrics.observe(key, x, took)
	if key.code == http.StatusTooManyRequests || key.code == http.StatusGatewayTimeout {
		c.metrics.terminated.WithLabelValues(key.verb, key.group, key.version, key.resource, key.subresource,
			key.scope, component, strconv.Itoa(key.code)).Inc()
	}
	c.log(x, key, took)
	if x.longRunning {
		c.running(x).Dec()
	}
}

// log writes the line of a finished request, with the names of kube-apiserver's httplog.
func (c *Chain) log(x *exchange, key seriesKey, took time.Duration) {
	level, message := slog.LevelDebug, "HTTP"
	switch {
	case key.code >= http.StatusInternalServerError && !c.Closed() && x.r.Context().Err() == nil:
		level = slog.LevelWarn
	case took >= slowRequest && !x.longRunning && key.code != http.StatusGatewayTimeout:
		level, message = slog.LevelInfo, "slow request"
	}
	ctx := x.r.Context()
	if !c.config.Log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("verb", key.verb), slog.String("URI", x.r.URL.RequestURI()), slog.Duration("latency", took),
		slog.String("userAgent", x.r.UserAgent()), slog.String("audit-ID", x.scope.AuditID),
		slog.String("srcIP", x.r.RemoteAddr),
	}
	if x.user != nil {
		attrs = append(attrs, slog.String("user", x.user.GetName()))
	}
	if x.conn != nil {
		attrs = append(attrs, slog.Bool("hijacked", true))
	} else {
		attrs = append(attrs, slog.Int("resp", key.code), slog.Int64("bytes", x.written))
	}
	if message != "HTTP" {
		x.scope.Latency.Each(func(name string, took time.Duration) {
			attrs = append(attrs, slog.Duration(name, took))
		})
	}
	c.config.Log.LogAttrs(ctx, level, message, attrs...)
}

package front

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"
)

// slowRequest is from when on a request is logged as slow.
const slowRequest = 5 * time.Second

// measure counts the request and writes it to the log.
func (s *Server) measure(x *exchange, next func(*exchange)) {
	key := s.labels(x)
	if x.longRunning {
		running := s.metrics.longRunning.WithLabelValues(key.verb, key.group, key.version, key.resource,
			key.subresource, key.scope, component)
		running.Inc()
		defer running.Dec()
	}
	aborted := true
	defer func() {
		if aborted {
			s.metrics.aborted.WithLabelValues(key.verb, key.group, key.version, key.resource, key.subresource,
				key.scope).Inc()
		}
		key.code = x.code
		if key.code == 0 {
			key.code = http.StatusOK // what net/http sends for an answer that no handler began
		}
		took := s.config.Now().Sub(x.started)
		s.metrics.observe(key, took)
		if key.code == http.StatusTooManyRequests || key.code == http.StatusGatewayTimeout {
			s.metrics.terminated.WithLabelValues(key.verb, key.group, key.version, key.resource, key.subresource,
				key.scope, component, strconv.Itoa(key.code)).Inc()
		}
		level := slog.LevelDebug
		if key.code >= http.StatusInternalServerError && s.closing.Err() == nil && x.r.Context().Err() == nil {
			level = slog.LevelWarn
		}
		message := "request"
		if level == slog.LevelDebug && took >= slowRequest && !x.info.LongRunning() {
			level, message = slog.LevelInfo, "slow request"
		}
		ctx := x.r.Context()
		if !s.config.Log.Enabled(ctx, level) {
			return
		}
		name := ""
		if x.who != nil {
			name = x.who.GetName()
		}
		s.config.Log.LogAttrs(ctx, level, message,
			slog.String("method", x.r.Method), slog.String("uri", x.r.URL.RequestURI()), slog.Int("code", key.code),
			slog.Duration("took", took),
			slog.Int64("bytes", x.written), slog.String("user", name), slog.String("agent", x.r.UserAgent()),
			slog.String("from", x.r.RemoteAddr), slog.String("auditID", x.scope.AuditID))
	}()
	next(x)
	aborted = false
}

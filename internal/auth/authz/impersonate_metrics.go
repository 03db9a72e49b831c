package authz

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// impersonationMetrics holds Kubernetes' metrics. Nil counts nothing.
type impersonationMetrics struct {
	attempts, checks             *prometheus.CounterVec
	attemptSeconds, checkSeconds *prometheus.HistogramVec
}

func newImpersonationMetrics(registry *prometheus.Registry) *impersonationMetrics {
	if registry == nil {
		return nil
	}
	labels := []string{"mode", "decision"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "apiserver_impersonation_" + name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_impersonation_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, labels)
	}
	m := &impersonationMetrics{
		attempts: counter("attempts_total", "Total number of impersonation attempts split by mode and decision."),
		attemptSeconds: histogram("attempts_duration_seconds",
			"Latency of impersonation attempts in seconds split by mode and decision."),
		checks: counter("authorization_attempts_total",
			"Total number of authorization checks made by the impersonation handler split by mode and decision."),
		checkSeconds: histogram("authorization_attempts_duration_seconds",
			"Latency of authorization checks made by the impersonation handler in seconds split by mode and decision."),
	}
	registry.MustRegister(m.attempts, m.attemptSeconds, m.checks, m.checkSeconds)
	return m
}

// attempt counts a request to act as another user. mode is "" if none allowed it.
func (m *impersonationMetrics) attempt(mode string, allowed bool, took time.Duration) {
	if m != nil {
		m.attempts.WithLabelValues(mode, decision(allowed)).Inc()
		m.attemptSeconds.WithLabelValues(mode, decision(allowed)).Observe(took.Seconds())
	}
}

// check counts a question to the authorizer.
func (m *impersonationMetrics) check(mode string, allowed bool, took time.Duration) {
	if m != nil {
		m.checks.WithLabelValues(mode, decision(allowed)).Inc()
		m.checkSeconds.WithLabelValues(mode, decision(allowed)).Observe(took.Seconds())
	}
}

func decision(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

// lastModesLimit bounds the number of cached users; at the limit the cache starts over.
const lastModesLimit = 10_000

// lastModes caches the mode of each user's last impersonation. It only decides which mode to try first, so a hash
// collision between users is harmless.
type lastModes struct {
	mu    sync.Mutex
	seed  maphash.Seed
	modes map[uint64]string
}

// first returns modes with user's last mode moved to the front.
func (l *lastModes) first(user string, modes []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.modes == nil {
		return modes
	}
	if at := slices.Index(modes, l.modes[maphash.String(l.seed, user)]); at > 0 {
		return append([]string{modes[at]}, slices.Delete(slices.Clone(modes), at, at+1)...)
	}
	return modes
}

func (l *lastModes) set(user, mode string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.modes == nil {
		l.seed = maphash.MakeSeed()
	}
	if l.modes == nil || len(l.modes) >= lastModesLimit {
		l.modes = map[uint64]string{}
	}
	l.modes[maphash.String(l.seed, user)] = mode
}

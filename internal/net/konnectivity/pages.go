package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Pages are the status pages of a server or an agent.
type Pages struct {
	// Ready returns why it is not ready, "" if it is. NotReady is the status code of the former.
	Ready    func() string
	NotReady int
	Metrics  prometheus.Gatherer
	// Health and Admin are where it listens, "host:port".
	Health, Admin string
	// Profiles are served on Admin; Contention includes block profiles.
	Profiles, Contention bool
}

// health serves /healthz, /readyz (/ready is its old name) and /metrics.
func (p *Pages) health() http.Handler {
	mux := http.NewServeMux()
	ready := func(w http.ResponseWriter, _ *http.Request) {
		if why := p.Ready(); why != "" {
			w.WriteHeader(p.NotReady)
			_, _ = io.WriteString(w, why)
			return
		}
		_, _ = io.WriteString(w, "ok")
	}
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("/readyz", ready)
	mux.HandleFunc("/ready", ready)
	mux.Handle("/metrics", promhttp.HandlerFor(p.Metrics, promhttp.HandlerOpts{}))
	return mux
}

// admin serves /metrics and profiles.
func (p *Pages) admin() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(p.Metrics, promhttp.HandlerOpts{}))
	if p.Profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
		if p.Contention {
			runtime.SetBlockProfileRate(1)
		}
	}
	return mux
}

// Serve listens and serves until the function that it returns is called.
func (p *Pages) Serve(log *slog.Logger) (stop func(), err error) {
	var all sync.WaitGroup
	var servers []*http.Server
	stop = func() {
		for _, s := range servers {
			_ = s.Close()
		}
		all.Wait()
	}
	for _, at := range []struct {
		name, address string
		handler       http.Handler
	}{{"health", p.Health, p.health()}, {"admin", p.Admin, p.admin()}} {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", at.address)
		if err != nil {
			stop()
			return nil, fmt.Errorf("%s port: %w", at.name, err)
		}
		s := pageServer(at.handler)
		servers = append(servers, s)
		all.Go(func() {
			if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				log.Error("pages are no longer served", "port", at.name, "error", err)
			}
		})
	}
	return stop, nil
}

// pageServer returns a server with timeouts for idle clients.
func pageServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: HandshakeTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
}

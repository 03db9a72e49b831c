package conversion

import (
	"errors"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds of the webhook.
const (
	maxReview  = 64 << 20 // bytes of a review: kube-apiserver sends all objects of a list in one
	maxReviews = 16       // at once; further ones wait
)

// handler serves reviews, health and metrics.
func (r *reviewer) handler(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	healthy := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc("GET "+path, healthy)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	places := make(chan struct{}, maxReviews) // its capacity bounds the memory of reviews
	mux.HandleFunc("POST /convert", func(w http.ResponseWriter, req *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-req.Context().Done():
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxReview))
		if err != nil {
			status := http.StatusBadRequest
			if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
				status = http.StatusRequestEntityTooLarge
			}
			http.Error(w, err.Error(), status)
			return
		}
		out, err := r.answer(req.Context(), body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(out)
	})
	return mux
}

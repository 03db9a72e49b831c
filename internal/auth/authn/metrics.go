package authn

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Metrics counts authentications, under Kubernetes' names. Nil counts nothing.
type Metrics struct {
	success, failure, wrong outcome
	users                   map[string]prometheus.Counter // by usernameLabel
	expirations             prometheus.Observer
}

// outcome counts the requests with one result.
type outcome struct {
	attempts prometheus.Counter
	seconds  prometheus.Observer
}

// NewMetrics registers the metrics.
func NewMetrics(registry *prometheus.Registry) *Metrics {
	users := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "authenticated_user_requests",
		Help: "Counter of authenticated requests broken out by username.",
	}, []string{"username"})
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "authentication_attempts", Help: "Counter of authenticated attempts.",
	}, []string{"result"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "authentication_duration_seconds",
		Help:    "Authentication duration in seconds broken out by result.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
	}, []string{"result"})
	const hour, day = 3600, 86400
	expirations := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "apiserver_client_certificate_expiration_seconds",
		Help: "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
		Buckets: []float64{
			0, hour / 2, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day, 30 * day, 90 * day,
			180 * day, 360 * day,
		},
	})
	registry.MustRegister(users, attempts, seconds, expirations)
	result := func(label string) outcome {
		return outcome{attempts.WithLabelValues(label), seconds.WithLabelValues(label)}
	}
	m := &Metrics{
		success: result("success"), failure: result("failure"), wrong: result("error"),
		users: map[string]prometheus.Counter{}, expirations: expirations,
	}
	for _, label := range append(knownUsers, emailUser, otherUser) {
		m.users[label] = users.WithLabelValues(label)
	}
	return m
}

// count records the result of one request.
func (m *Metrics) count(u user.Info, err error, took time.Duration) {
	if m == nil {
		return
	}
	o := &m.success
	switch {
	case err == nil:
		m.users[usernameLabel(u.GetName())].Inc()
	case errors.Is(err, errNoProof):
		o = &m.failure
	default:
		o = &m.wrong
	}
	o.attempts.Inc()
	o.seconds.Observe(took.Seconds())
}

// expiration notes how long a client's certificate is still valid.
func (m *Metrics) expiration(left time.Duration) {
	if m != nil {
		m.expirations.Observe(left.Seconds())
	}
}

// knownUsers are the users counted by name; the label never contains a name chosen by a client.
var knownUsers = []string{"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}

const (
	emailUser = "email_id"
	otherUser = "other"
)

func usernameLabel(name string) string {
	for _, known := range knownUsers {
		if name == known {
			return known
		}
	}
	if strings.Contains(name, "@") {
		return emailUser
	}
	return otherUser
}

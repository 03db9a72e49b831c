// Package monitoring tests the alert rules and the dashboard of packaging/monitoring with a real Prometheus: its
// promtool runs the cases of alerts.yaml, and it scrapes a real server, with a token for metrics only, and evaluates
// every expression.
//
// `make monitoring-test` runs the tests, with Prometheus from a package. They are skipped without the variables that
// the target sets.
package monitoring

// Package monitoring holds the alert rules and the dashboard of packaging/monitoring to a real Prometheus: its promtool
// runs the cases of alerts.yaml here, and it scrapes a real server with a token that may do nothing else and evaluates
// every expression.
//
// `make monitoring-test` calls it, with Prometheus from a package; without what the target sets, nothing is tested
// here.
package monitoring

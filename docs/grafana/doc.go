// Package grafana has a dashboard for Grafana (holdfast.json), alerts for Prometheus (alerts.yaml)
// with their unit tests (alerts_test.yaml), and what checks them: Prometheus' own parser and engine
// run each query and each alert over an hour of locks in fake time, measured by middleware/metrics.
// It is a module of its own: users never download Prometheus.
package grafana

// Package grafana has a dashboard, holdfast.json, and what checks it: each query by Prometheus' own
// parser, and each name and label in it by what examples/observability serves. It is a module of
// its own: users never download Prometheus.
package grafana

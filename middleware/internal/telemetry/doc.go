// Package telemetry is shared by tracing, metrics and logging: the outcomes they report, the parts
// of an error they show, the form of a holder's trace context in a note, and the [Observer] of an
// acquire.
package telemetry

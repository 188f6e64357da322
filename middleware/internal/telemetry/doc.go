// Package telemetry is shared by tracing, metrics and logging: the outcomes they report, what of an
// error may be shown, how a holder's trace context is written into a note, and the [Observer] of an
// acquire.
package telemetry

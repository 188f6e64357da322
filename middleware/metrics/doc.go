// Package metrics measures acquisitions and holds of any Locker with OpenTelemetry instruments.
//
//	m, err := metrics.New(metrics.Config{}) // of the global MeterProvider
//	...
//	l = locker.Chain(l, m)
//
// It needs OpenTelemetry's API alone; the program chooses the SDK. [docs/observability.md] lists
// the instruments with their attributes and buckets.
//
// Every attribute has few values: the mode, the strategy, the provider, the outcome, the type of an
// error. Names of locks do not appear unless Config.Group maps them to groups.
//
// # What is guaranteed
//
// Each acquisition is counted once, however often it tried, if the Middleware is outside of
// middleware/retry, and each attempt where it is inside. The counts of locks held and of waiters
// return to zero when all locks have ended and all calls have returned. A hold ends when its
// release was answered, or failed, or when the lock was lost, whichever comes first.
//
// # What is not guaranteed
//
// A lock whose acquisition began before the SDK was installed is not measured. The
// wait duration includes the time that the attempts take.
//
// [docs/observability.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/observability.md
package metrics

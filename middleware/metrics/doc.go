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
// Outside of middleware/retry the Middleware counts each acquisition once, however often it tried;
// inside, it counts each attempt. The counts of locks held and of waiters return to zero when all
// locks have ended and all calls have returned. A hold ends when its release is answered or fails,
// or when the lock is lost, whichever comes first.
//
// # What is not guaranteed
//
// If an acquisition began before the SDK was installed, its lock is not measured. The wait duration
// includes the time of the attempts.
//
// [docs/observability.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/observability.md
package metrics

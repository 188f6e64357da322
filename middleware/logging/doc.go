// Package logging logs over log/slog the events of acquisitions and holds that a person should look
// at: a contended lock, a slow wait, renewals or a node of a quorum beginning to fail, a lost lock.
// It works with any Locker.
//
//	logs, err := logging.New(logging.Config{SlowWait: 5 * time.Second})
//	...
//	l = locker.Chain(l, logs)
//
// Success is not logged, except for a recovery after a failure. By default a wait is slow after one
// second, and a contended lock is logged at the level Debug. [docs/observability.md] lists the
// records.
//
// A slow wait is logged when it becomes slow, so an endless one is seen, and again when it has
// ended. A loss is logged once, when it happens, even if the holder never looks at its Lock.
//
// Names of locks and notes of holders are logged. Tokens never are, and owners only with
// Config.ShowOwner. The ctx of a record is the acquire's: a handler can take the trace ID from it.
//
// [docs/observability.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/observability.md
package logging

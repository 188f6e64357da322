// Package logging logs, by log/slog, what is worth a look in the acquisitions and holds of any
// Locker: that a lock is contended, that a wait is slow, that renewals or a node of a quorum begin
// to fail, that a lock was lost. Success is not logged, except for the recovery of something that
// failed. docs/observability.md lists the records.
//
// A slow wait is told when it becomes slow, so that one without end is seen, and again when it has
// ended. A loss is told when it happens, once, even if the holder never looks at its Lock.
//
// Names of locks and notes of holders are logged; tokens never are, and owners only if
// Config.ShowOwner asks for it. The ctx of a record is the acquire's, so that a handler can take
// the trace ID from it.
package logging

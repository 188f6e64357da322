// Package driver is the contract between Holdfast's strategies and a Redis client: the calls, and
// the meaning of their errors.
//
// An adapter implements [Driver] over the user's client. It sends each command at most once,
// reports what it knows of the outcome and nothing more, and returns soon after its context ends.
// It does not resend, guess or time out by itself; strategies do. Package
// [github.com/holdfast-go/holdfast/locker/driver/adapter] has the common parts of all adapters, and
// shows how to write one.
//
// # Errors
//
//   - A [*ServerError] is an error reply. [NotExecuted] reports whether it proves that nothing ran.
//   - After an error that matches [ErrNotSent] the command certainly never left the process.
//   - After any other error the outcome is unknown: the command may have run, be running, or run
//     later.
//
// [Transient] reports whether trying again later can help.
package driver

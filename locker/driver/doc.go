// Package driver is the contract between Holdfast's strategies and a Redis client: what a strategy
// calls, and what the errors mean.
//
// An adapter implements [Driver] over a client that the user built and keeps. It sends each command
// at most once, reports what it knows of the outcome and nothing more, and returns soon after its
// context ends. It does not resend, guess or time out by itself; strategies do that. Package
// [github.com/holdfast-go/holdfast/locker/driver/adapter] has the parts that are the same for every
// client, and shows how to write an adapter.
//
// # Errors
//
//   - A [*ServerError] is an error reply. [NotExecuted] reports whether it proves that nothing ran.
//   - An error that matches [ErrNotSent] belongs to a command that certainly never left the
//     process.
//   - After any other error the outcome is unknown: the command may have run, be running, or run
//     later.
//
// [Transient] reports whether trying again later can help.
package driver

// Package driver is the contract between Holdfast's strategies and a Redis client, and the part of an adapter that is the
// same for every client.
//
// An adapter implements [Driver] over a client that the user built and keeps. It sends each command once, tells what it
// knows of the outcome and nothing more, and returns soon after its context ends. Everything that needs thought is here,
// written once: [Hub] fans one subscriber connection out to many waiters, [EvalOnce] handles NOSCRIPT, [Await] returns from
// a call that ignores its context, [Base] closes in order, [NewServerError] and [NotSent] classify errors.
//
// What an error means:
//
//   - a [*ServerError] is an error reply. [NotExecuted] tells which of them prove that nothing ran;
//   - an error that matches [ErrNotSent] belongs to a command that surely never left;
//   - any other error leaves the command open: it may have run, be running, or run later.
//
// A driver does not resend, guess or time out by itself beyond what ctx says; strategies do that.
package driver

// Package adapter is the toolkit for writing an adapter of a Redis client: an implementation of
// driver.Driver. It has the parts that are the same for every client. The page
// [docs/writing-a-provider.md] goes through a complete adapter; the Example of this package is a
// small one.
//
// # What to implement
//
// In this order:
//
//  1. A type that embeds [Base]. Every method that sends begins with [Base.CheckOpen]. Close is
//     [Base.Shutdown]. Base also lets background work finish before the driver is closed.
//  2. One function that sends a command and classifies its error, see below. SetNX is one call of
//     it.
//  3. Eval, with [ScriptCache.Eval]: it runs a script by digest, and by source only after NOSCRIPT.
//     driver.NewReply converts what the client decoded.
//  4. Subscribe, with a [Feed] over one connection of the client and a [Hub] that shares it among
//     all subscriptions and reopens it when it breaks. In a cluster [NewShardedHub] also listens to
//     SPUBLISH. Delivery (driver.Deliverer) says which messages reach a subscription.
//  5. Info.
//  6. If the client allows it, driver.Batcher (many scripts in one round trip) and
//     driver.Acknowledger (a script and WAIT on one connection, with [ScriptCache.EvalAcked] and
//     [AckedReply]).
//
// # Errors
//
// An adapter reports what is known of the outcome of a command and nothing more:
//
//   - The server replied with an error: [NewServerError].
//   - The command certainly never left the process: driver.NotSent. [DialFailed] recognizes the
//     error of a connection that was not made.
//   - Another attempt would end the same way, for example because the client is closed:
//     driver.Permanent.
//   - Anything else is returned as the client reports it. The outcome is unknown then, and the
//     strategy resolves it. Never report "not sent" for a command that may have left.
//
// A client that sends a command again by itself, after a timeout or a broken connection, must be
// kept from it for these commands: the strategy cannot count what it does not see.
//
// # Contexts
//
// A call returns soon after its context ends, whatever the client does:
//
//   - If the client returns when the context ends, call it directly.
//   - If it obeys only the deadline, call it directly where driver.Cancellable is false, and with
//     [Await] otherwise.
//   - If it ignores contexts, call it with [Await]. The error is a driver.PendingError then,
//     through which the strategy learns the late answer.
//
// [Commands] takes care of that, and of more, for an adapter that gives it a function that sends
// several commands in one round trip, or one at a time ([Client]): commands that are called at the
// same time travel together, a caller can leave at any moment, no more round trips are under way than
// the client has connections, and some are reserved for renewals and releases. There is a [Pipeline]
// for each server, so that a frozen one does not block the others: [Topology] has those of a cluster,
// and [SlotPipelines] are for a client that chooses among servers by itself.
//
// # Proof
//
// Run the suite of package conformance/drivertest. What the client cannot do goes into
// Harness.Lacks and must return errors.ErrUnsupported.
//
// [docs/writing-a-provider.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/writing-a-provider.md
package adapter

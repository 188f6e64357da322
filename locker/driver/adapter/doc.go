// Package adapter is the toolkit for writing an adapter of a Redis client: an implementation of
// driver.Driver. It has the parts that are the same for every client. The page
// [docs/writing-a-provider.md] goes through a complete adapter; the Example of this package is a
// small one.
//
// # What to implement
//
// In this order:
//
//  1. A function that sends a command and classifies its error, see below: Send of a [Client]. A
//     client that cannot send several commands in one round trip has Single set.
//  2. A [Feed] over one connection of the client, and a [Hub] that shares it among all
//     subscriptions and reopens it when it breaks. In a cluster [NewShardedHub] also listens to
//     SPUBLISH.
//  3. A [Driver] over a [Pipeline] and the Hub. It implements driver.Driver. What the client is not
//     said to do, such as WAIT, returns errors.ErrUnsupported.
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
// # Pipelines
//
// A Pipeline returns a call soon after its context ends, whatever the client does. Commands that are
// called at the same time travel together, no more round trips are under way than the client has
// connections, and some are reserved for renewals and releases. The strategy learns a late answer
// through a driver.PendingError. There is a Pipeline for each server, so that a frozen one does not
// block the others: [Topology] has those of a cluster, and [SlotPipelines] are for a client that
// chooses among servers by itself.
//
// What else may wait, such as a dial for a Feed, is called with [Await] or [AwaitConn] if the client
// ignores contexts.
//
// # Proof
//
// Run the suite of package conformance/drivertest. What the client cannot do goes into
// Harness.Lacks and must return errors.ErrUnsupported.
//
// [docs/writing-a-provider.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/writing-a-provider.md
package adapter

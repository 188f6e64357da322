// Package adapter is the toolkit for writing an adapter of a Redis client: an implementation of
// driver.Driver. The page [docs/writing-a-provider.md] goes through a complete adapter; the Example
// of this package is a small one.
//
// # What to implement
//
// In this order:
//
//  1. Send of a [Client]: it sends commands and classifies their errors, see below. Set Single if
//     the client cannot send several commands in one round trip.
//  2. A [Feed] over one connection of the client, and a [Hub]: it shares the Feed among all
//     subscriptions and reopens it when it breaks. In a cluster, [Shards] let it receive messages of
//     SPUBLISH too.
//  3. A [Driver] over a [Pipeline] and the Hub. It implements driver.Driver. A feature missing in
//     Client, such as WAIT, returns errors.ErrUnsupported.
//
// # Errors
//
// An adapter reports what is known of the outcome of a command and nothing more:
//
//   - The server replied with an error: [NewServerError].
//   - The command certainly never left the process: driver.NotSent. [DialFailed] recognizes the
//     error of a failed dial.
//   - Another attempt would end the same way, for example because the client is closed:
//     driver.Permanent.
//   - Anything else is returned as the client reports it. The outcome is unknown then, and the
//     strategy resolves it. Never report "not sent" for a command that may have left.
//
// If the client resends commands by itself, after a timeout or a broken connection, switch that off
// for these commands: the strategy must count every send.
//
// # Pipelines
//
// A Pipeline returns a call soon after its context ends, whatever the client does. Concurrent
// commands travel together, no more round trips are under way than the client has connections, and
// some are reserved for renewals and releases. The strategy learns a late answer through a
// driver.PendingError. There is a Pipeline for each server, so that a frozen one does not block the
// others: [Topology] has those of a cluster, and [NewSlotPipelines] makes those of a client that
// chooses among servers by itself.
//
// If the client ignores contexts, call its other functions, such as a dial for a Feed, with
// [Await].
//
// # Proof
//
// Run the suite of package conformance/drivertest. Harness.Lacks lists the client's missing
// features; they must return errors.ErrUnsupported.
//
// [docs/writing-a-provider.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/writing-a-provider.md
package adapter

package driver

import (
	"context"
	"time"
)

// Driver is what a strategy needs of a Redis client. Its methods are safe for concurrent use.
// adapter.Base implements the common ones, and defaults for others.
//
// A call sends its command at most once, whatever the client's settings are. It returns soon after
// ctx ends; a command in flight then may still be executed.
//
// Strategies often pass contexts that can end at their deadline only; an adapter may use
// [Cancellable] to choose a cheaper path.
type Driver interface {
	// SetNX sends SET key value NX PX ttl. set is true if the reply is OK, and false if it is nil.
	// ttl is in whole milliseconds, at least one.
	SetNX(ctx context.Context, key, value string, ttl time.Duration) (set bool, err error)
	// Eval runs s by digest, and sends its source only after NOSCRIPT. A call executes s at most
	// once. Eval does not retain keys and args.
	Eval(ctx context.Context, s *Script, keys, args []string) (Reply, error)
	// EvalAcked is Eval followed by WAIT (https://redis.io/docs/latest/commands/wait/) on the same
	// connection and in the same round trip. It executes the script at most once. It returns as
	// soon as that many replicas have acknowledged the script's writes, or timeout has passed; acked
	// is how many have. replicas is at least one. timeout is in whole milliseconds, at least one.
	//
	// WAIT covers only the writes of its own connection. If the script wrote nothing, acked says
	// nothing about an earlier write on another connection.
	//
	// The error is Eval's or, if the script was answered and WAIT was not, a [*WaitError]. If the
	// client does not report the script's reply in that case, the script's outcome is unknown. If
	// the driver cannot wait for replicas, the error matches ErrNotSent and errors.ErrUnsupported.
	EvalAcked(
		ctx context.Context, s *Script, keys, args []string, replicas int, timeout time.Duration,
	) (reply Reply, acked int, err error)

	// Subscribe returns once the server has confirmed the subscription. ctx bounds the call, not
	// the subscription. If the driver cannot subscribe, the error matches errors.ErrUnsupported.
	Subscribe(ctx context.Context, channel string) (Subscription, error)
	// Delivery returns the Delivery for this driver's present subscriptions to channel, or for one
	// made now. It may change, for example when a slot of a cluster moves. It sends nothing.
	Delivery(channel string) Delivery

	// Info names the client and the server, for traces.
	Info() Info
	// Server returns a value for the present server of key: values are equal (==) only if the keys
	// may be at one server. Strategies bound concurrent calls for each server, so that a silent one
	// does not delay the others. It sends nothing.
	Server(key string) any

	// Background runs f in a goroutine, for work after a call, such as the clean-up of an acquire of
	// unknown outcome. f gets the context of UntilClose; Close waits for f. If the driver is closed,
	// Background returns false and does not run f.
	Background(f func(ctx context.Context)) bool
	// BeginAcquire counts an acquire as in flight until end is called, once. Close waits for it: the
	// acquire fails with ErrClosed, and its hold is removed before Close makes other calls fail.
	// Once Close has begun, BeginAcquire returns ErrClosed.
	BeginAcquire() (end func(), err error)
	// UntilClose returns a context that ends when Close begins. A lock acquired later cannot be
	// renewed or released any more.
	UntilClose() context.Context
	// Close waits up to three seconds for background work and acquires in flight, and then closes
	// the adapter's own connections, never the caller's client. If any are running then, the error
	// matches ErrCleanUpUnfinished. Later calls fail with ErrClosed, a second Close too. Close does
	// not wait for other calls in flight, whose outcome may stay unknown.
	Close() error
}

// Info names the client and the server of a driver.
type Info struct {
	// Client is the usual name of the Go client: "go-redis", "rueidis", "redigo", "valkey-go".
	Client string
	// Address is the server's "host:port", or several separated by commas. It is empty if the
	// client does not report it.
	Address string
}

// Subscription is one listener on one channel.
type Subscription interface {
	// Wake returns a channel that receives a value after a message and after every
	// (re)subscription. It is never closed. Wake-ups are coalesced and may be spurious: they are
	// hints to try again.
	Wake() <-chan struct{}
	// Close ends the subscription. It does not wait for the server.
	Close() error
}

// Delivery is the way of a message from a script to the subscriptions of a driver.
type Delivery uint8

// The kinds of delivery.
const (
	// DeliveryPlain is by PUBLISH. Its number of receivers cannot be relied on: in a cluster it
	// counts the subscribers at one node.
	DeliveryPlain Delivery = iota
	// DeliveryCounted is by PUBLISH at the only server, which also has the subscriptions: its number
	// of receivers is 0 if nobody listens.
	DeliveryCounted
	// DeliverySharded is by SPUBLISH: only the nodes of the channel's slot get the message
	// (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub). The number of receivers is 0
	// if nobody listens. PUBLISH reaches such a subscription as well.
	DeliverySharded
)

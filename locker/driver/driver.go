package driver

import (
	"context"
	"time"
)

// Driver is what a strategy needs of a Redis client. Its methods are safe for concurrent use. A call sends its command at
// most once, whatever the client is set to, and returns soon after ctx is done; what is in flight then is finished behind.
//
// The contexts that strategies pass are often bounded by [Bound]; an adapter may use [Cancellable] to choose a cheaper path.
type Driver interface {
	// SetNX sends SET key value NX PX ttl. set is true on OK, false on nil, and nothing else. ttl is in whole
	// milliseconds, at least one.
	SetNX(ctx context.Context, key, value string, ttl time.Duration) (set bool, err error)
	// Eval runs s by digest, and sends its source only after NOSCRIPT. A call executes it at most once. It keeps neither
	// slice.
	Eval(ctx context.Context, s *Script, keys, args []string) (Reply, error)
	// Subscribe returns once the server has confirmed, or errors.ErrUnsupported. ctx bounds the asking.
	Subscribe(ctx context.Context, channel string) (Subscription, error)
	// Info names the client and the server, for traces.
	Info() Info
	// Close waits up to three seconds for background work, and then closes what the adapter opened,
	// never the caller's client. If work is still running then, the error is ErrCleanUpUnfinished.
	// Later calls fail with ErrClosed.
	// Close does not wait for calls in flight, whose outcome may stay unknown; for acquires see
	// [Drainer].
	Close() error
}

// Info names what a driver talks through and to.
type Info struct {
	// Client is the Go client, by its usual name: "go-redis", "rueidis", "redigo".
	Client string
	// Address is the server's "host:port", or several with commas; empty where the client does not tell.
	Address string
}

// Batcher is implemented by drivers that send many scripts in one round trip. Results come in the order of the calls; each
// call has an outcome of its own.
type Batcher interface {
	EvalMany(ctx context.Context, calls []Call) []Result
}

// Call is one script call of a batch.
type Call struct {
	Script     *Script
	Keys, Args []string
}

// Result is the outcome of one [Call].
type Result struct {
	Reply Reply
	Err   error
}

// Backgrounder is implemented by drivers that look after work that outlives a call, such as the clean-up of an acquire of
// unknown outcome. adapter.Base implements it. The ctx of f ends when the driver's Close begins; Close then waits for f, bounded.
// false: the driver is closed and f does not run.
type Backgrounder interface {
	Background(f func(ctx context.Context)) bool
}

// Drainer is implemented by drivers whose Close waits for acquires in flight, as it does for
// background work. Such an acquire fails with ErrClosed, and what it acquired is removed before
// Close makes other calls fail. adapter.Base implements Drainer.
type Drainer interface {
	// BeginAcquire counts an acquire as in flight, or returns ErrClosed once Close has begun.
	BeginAcquire() error
	// EndAcquire ends what BeginAcquire counted.
	EndAcquire()
	// Closing reports whether Close has begun: a lock acquired now can no longer be renewed or
	// released.
	Closing() bool
}

// Subscription is one listener on one channel.
type Subscription interface {
	// Wake receives a value after a message and after every (re)subscription. It is never closed. Wake-ups are
	// coalesced and may be spurious: they are hints to try again.
	Wake() <-chan struct{}
	// Close ends the subscription. It does not wait for the server.
	Close() error
}

package retry

import (
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Config configures the waiting. The zero Config works.
type Config struct {
	// Policy makes the pauses between the attempts of one request; it is called once for each
	// request that has to wait, so that nothing is shared. Attempts after a wake-up or the end of a
	// lease are extra: they neither ask the policy nor move the end of the next pause. backoff.Stop
	// (or any negative pause) gives up, so
	// backoff.WithMaxRetries(backoff.NewConstantBackOff(interval), tries) tries that often, that
	// far apart. Without a Policy, a waiter with a place in the server's queue polls more rarely
	// (see the package comment). If Policy returns nil, the acquire that called it returns
	// ErrInvalid. Default: exponential from 5 ms, doubling to 250 ms, each pause drawn from half to
	// one and a half of that, without end.
	Policy func() backoff.BackOff
	// MaxAttempts is how many attempts one request sends at most, without the first try of
	// locker.AcquireAll. Default: 0, no limit.
	MaxAttempts int
	// FailFast returns transport errors, and server errors that may pass (LOADING, CLUSTERDOWN
	// ...), at once. A lock that is held is still waited for. Default: false, they are retried as
	// long as ctx, MaxWait, MaxAttempts and Policy allow.
	FailFast bool
	// WakeJitter is the maximum random delay before an attempt that follows a release or the end of
	// a lease. It keeps processes that are woken at the same time from colliding, which matters if
	// concurrent attempts can all fail. If a refusal asks for more (ContentionError.Jitter, as of
	// strategies/redlock), that applies. Default: 0, no delay but what refusals ask for.
	WakeJitter time.Duration
	noPolicy   bool // there is no Policy
}

// The default policy.
const (
	backoffMin = 5 * time.Millisecond
	backoffMax = 250 * time.Millisecond
)

func defaultPolicy() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(backoffMin),
		backoff.WithMaxInterval(backoffMax),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0),
	)
}

// New returns a Middleware that waits. It may wrap several Lockers; each has queues of its own.
// Errors: ErrInvalid.
func New(cfg Config) (locker.Middleware, error) {
	if cfg.MaxAttempts < 0 {
		return nil, driver.Invalid("retry.Config.MaxAttempts", strconv.Itoa(cfg.MaxAttempts),
			"1 or more, or 0 for no limit")
	}
	if cfg.WakeJitter < 0 {
		return nil, driver.Invalid("retry.Config.WakeJitter", cfg.WakeJitter.String(),
			"a positive duration, or 0 for no delay")
	}
	if cfg.Policy == nil {
		cfg.Policy, cfg.noPolicy = defaultPolicy, true
	}
	return func(inner locker.Locker) locker.Locker {
		return &retrier{inner: inner, cfg: cfg, queues: newQueues(inner)}
	}, nil
}

package retry

import (
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
)

// Config configures the waiting. The zero Config works.
type Config struct {
	// Policy makes the pauses between the attempts of one request. It is called once for each
	// waiting request: nothing is shared. Attempts after a wake-up or the end of a lease are extra:
	// they neither ask the policy nor move the end of the next pause. backoff.Stop (or any negative
	// pause) gives up: with backoff.WithMaxRetries(backoff.NewConstantBackOff(interval), tries) a
	// request makes its first attempt and tries more, interval apart. Without a Policy, a waiter with
	// a place in the server's queue polls more rarely (see the package comment). If Policy returns
	// nil, the acquire returns ErrInvalid. Default: exponential without end, from 5 ms doubling to
	// 250 ms, each pause multiplied by a random factor from 0.5 to 1.5.
	Policy func() backoff.BackOff
	// MaxAttempts is the maximum number of attempts of one request, without the first try of
	// locker.AcquireAll. Default: 0, no limit.
	MaxAttempts int
	// FailFast returns transport errors and transient server errors (LOADING, CLUSTERDOWN ...) at
	// once. Requests still wait for a held lock. Default: false, such errors are retried as long as
	// ctx, MaxWait, MaxAttempts and Policy allow.
	FailFast bool
	// WakeJitter is the maximum random delay before an attempt after a release or the end of a
	// lease. It keeps processes woken at the same time from colliding, for strategies whose
	// concurrent attempts can all fail. If a refusal asks for more (lease.Hint.Jitter, as of
	// strategies/redlock), the larger delay applies. Default: 0, only the delay of refusals.
	WakeJitter time.Duration
}

// The pauses of the default policy.
const (
	backoffMin = 5 * time.Millisecond
	backoffMax = 250 * time.Millisecond
)

func (c Config) newPolicy() backoff.BackOff {
	if c.Policy != nil {
		return c.Policy()
	}
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(backoffMin),
		backoff.WithMaxInterval(backoffMax),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0),
	)
}

// New returns a waiting Middleware. It may wrap several Lockers; each has queues of its own.
// Errors: ErrInvalid.
func New(cfg Config) (locker.Middleware, error) {
	if cfg.MaxAttempts < 0 {
		return nil, argument.Invalid("retry.Config.MaxAttempts", strconv.Itoa(cfg.MaxAttempts),
			"1 or more, or 0 for no limit")
	}
	if cfg.WakeJitter < 0 {
		return nil, argument.Invalid("retry.Config.WakeJitter", cfg.WakeJitter.String(),
			"a positive duration, or 0 for no delay")
	}
	return func(inner locker.Locker) locker.Locker {
		return &retrier{inner: inner, cfg: cfg, queues: newQueues(inner)}
	}, nil
}

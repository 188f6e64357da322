package leader

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
)

// Config configures a Candidate. Name and Lead are required.
type Config struct {
	// Name is the name of the lock: 1 to 1024 bytes, as locker.Request.Name. The Candidates of one
	// name elect one leader.
	Name string
	// Lead does the leader's work. It is called in a goroutine of its own, with the number of the
	// term. Its ctx ends with the ctx of Run, and when the lease is lost; then context.Cause is a
	// [locker.LostError]. It carries the lock's owner, and additions of middleware, such as a span.
	// Lead should return soon after its ctx ends.
	//
	// Lead's result decides what comes next:
	//   - nil while it leads: the work is done. The Candidate steps down, and Run returns nil.
	//   - an error while it leads: another Candidate should try. This one steps down, and campaigns
	//     again after a pause.
	//   - anything after the lease was lost: the Candidate campaigns again after a pause.
	//   - anything after the ctx of Run ended: the Candidate steps down. Run returns Lead's error,
	//     or nil if that is only the error of Lead's ctx.
	//   - [Permanent](err), at any time: the Candidate steps down, and Run returns err.
	//
	// If Lead panics or calls runtime.Goexit, the Candidate steps down, and the panic or the Goexit
	// continues in the goroutine that called Run.
	Lead func(ctx context.Context, term int64) error
	// OnEnd is called at the end of each term, with its number and the error for which Run pauses
	// or returns, nil for none. The lock is released by then, unless the error matches
	// ErrLeadRunning. Run calls OnEnd in its own goroutine, and campaigns again after it has
	// returned. It does not call it if Lead panicked or called runtime.Goexit. Default: none; then
	// only Lead knows its errors.
	OnEnd func(term int64, err error)
	// TTL is how long the lease lasts unless it is renewed: 1 ms to 24 days. It bounds how long
	// nobody leads after the leader died, and how long a leader can be cut off from the server
	// before it loses the leadership. Default: the strategy's, 30 s.
	TTL time.Duration
	// Note describes this Candidate to others: [Observe] yields it, and the errors of refused
	// Candidates have it. At most 1024 bytes. Default: "".
	Note string
	// StopTimeout is how long Run waits for Lead to return after its ctx has ended, whatever ended
	// it. Default: 30 s.
	StopTimeout time.Duration
	// Policy makes the BackOff for the pauses before another campaign: after Lead returned an
	// error, the lease was lost, or an acquire failed. A term that lasts for a TTL or longer ends
	// the series of pauses; then Policy is called for a new BackOff. If a pause is backoff.Stop,
	// Run returns the cause of the pause. Default: exponential from 100 ms, doubling to 10 s, each
	// pause drawn from half to one and a half of that, without end.
	Policy func() backoff.BackOff
}

// The defaults.
const (
	defaultStopTimeout = 30 * time.Second
	pauseMin           = 100 * time.Millisecond
	pauseMax           = 10 * time.Second
)

func defaultPolicy() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(pauseMin),
		backoff.WithMaxInterval(pauseMax),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0),
	)
}

// request returns the Request of a campaign.
func (c Config) request(owner string) locker.Request {
	return locker.Request{Name: c.Name, TTL: c.TTL, Fenced: true, Note: c.Note, Owner: owner}
}

// withDefaults returns c with its defaults, or an error if it is invalid.
func (c Config) withDefaults() (Config, error) {
	if err := c.request("").Validate(); err != nil {
		return c, err
	}
	switch {
	case c.Lead == nil:
		return c, argument.Invalid("leader.Config.Lead", "nil", "a function")
	case c.StopTimeout < 0:
		return c, argument.Invalid("leader.Config.StopTimeout", c.StopTimeout.String(),
			"a positive duration, or 0 for 30s")
	case c.StopTimeout == 0:
		c.StopTimeout = defaultStopTimeout
	}
	if c.OnEnd == nil {
		c.OnEnd = func(int64, error) {}
	}
	if c.Policy == nil {
		c.Policy = defaultPolicy
	}
	return c, nil
}

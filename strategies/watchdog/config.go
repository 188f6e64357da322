package watchdog

import (
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Config configures the renewing. The zero Config works.
type Config struct {
	// Jitter is by which part of the time until a renewal it may come sooner, at random, so that locks taken together are
	// not renewed together for ever: more than 0 and at most 0.5. Default: 0.1, so that a TTL of 30 s is renewed after 9 to
	// 10 s.
	Jitter float64
	// MaxRenewals is how often a lock is renewed at most; failed renewals do not count. Then its lease runs out, and Err
	// matches ErrLost and ErrMaxRenewals. Default: 0, no limit.
	MaxRenewals int
	// MaxHold is how long after it was acquired a lock is renewed at most. Then its lease runs out, up to one TTL later, and
	// Err matches ErrLost and ErrMaxHold. Default: 0, no limit.
	MaxHold time.Duration
}

const (
	defaultJitter = 0.1
	maxJitter     = 0.5
)

// Why the watchdog let a lease run out: the cause of its ErrLost.
var (
	ErrMaxRenewals = errors.New("the watchdog has renewed it MaxRenewals times")
	ErrMaxHold     = errors.New("the watchdog stopped renewing it after MaxHold")
)

// New returns a Middleware that renews. It may wrap several Lockers, which then share one timer. It needs no closing: it is
// at rest when no lock is held. Put it inside middleware/retry or outside; it watches what was acquired. Errors: ErrInvalid.
func New(cfg Config) (locker.Middleware, error) {
	switch {
	case cfg.Jitter == 0:
		cfg.Jitter = defaultJitter
	case !(cfg.Jitter > 0 && cfg.Jitter <= maxJitter): // nor NaN
		return nil, &locker.InvalidError{
			What: "watchdog.Config.Jitter", Got: strconv.FormatFloat(cfg.Jitter, 'g', -1, 64), Allowed: "more than 0 and at most 0.5, or 0 for 0.1",
		}
	}
	if cfg.MaxRenewals < 0 {
		return nil, &locker.InvalidError{
			What: "watchdog.Config.MaxRenewals", Got: strconv.Itoa(cfg.MaxRenewals), Allowed: "1 or more, or 0 for no limit",
		}
	}
	if cfg.MaxHold < 0 {
		return nil, &locker.InvalidError{
			What: "watchdog.Config.MaxHold", Got: cfg.MaxHold.String(), Allowed: "a positive duration, or 0 for no limit",
		}
	}
	s := &scheduler{cfg: cfg, epoch: time.Now(), groups: map[groupKey]*group{}}
	return func(inner locker.Locker) locker.Locker { return &watcher{inner, s} }, nil
}

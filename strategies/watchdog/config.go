package watchdog

import (
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Config configures the renewals. The zero Config works.
type Config struct {
	// Jitter is the maximum fraction of the renewal interval by which a renewal is advanced, at
	// random. It keeps locks acquired together from being renewed together. More than 0 and at most
	// 0.5. Default: 0.1, so a TTL of 30 s is renewed after 9 to 10 s.
	Jitter float64
	// MaxRenewals is the maximum number of renewals of a lock; failed ones do not count. After them
	// its lease runs out, and Err matches ErrLost and ErrMaxRenewals. Default: 0, no limit.
	MaxRenewals int
	// MaxHold is the maximum time after the acquire at which a lock is renewed. After it the lease
	// runs out, up to one TTL later, and Err matches ErrLost and ErrMaxHold. Default: 0, no limit.
	MaxHold time.Duration
}

const (
	defaultJitter = 0.1
	maxJitter     = 0.5
)

// The causes of an ErrLost if the watchdog let the lease run out.
var (
	// ErrMaxRenewals: the lock was renewed Config.MaxRenewals times.
	ErrMaxRenewals = errors.New("the watchdog has renewed it MaxRenewals times")
	// ErrMaxHold: the lock was held for Config.MaxHold.
	ErrMaxHold = errors.New("the watchdog stopped renewing it after MaxHold")
)

// New returns a Middleware that renews locks while they are held. It may wrap several Lockers; they
// share one timer. It needs no closing: without locks it has no goroutine and no timer. It works
// inside middleware/retry and middleware/handover, and outside. Errors: ErrInvalid.
func New(cfg Config) (locker.Middleware, error) {
	switch {
	case cfg.Jitter == 0:
		cfg.Jitter = defaultJitter
	case !(cfg.Jitter > 0 && cfg.Jitter <= maxJitter): // nor NaN
		return nil, &locker.InvalidError{
			What: "watchdog.Config.Jitter", Got: strconv.FormatFloat(cfg.Jitter, 'g', -1, 64),
			Allowed: "more than 0 and at most 0.5, or 0 for 0.1",
		}
	}
	if cfg.MaxRenewals < 0 {
		return nil, &locker.InvalidError{
			What: "watchdog.Config.MaxRenewals", Got: strconv.Itoa(cfg.MaxRenewals),
			Allowed: "1 or more, or 0 for no limit",
		}
	}
	if cfg.MaxHold < 0 {
		return nil, &locker.InvalidError{
			What: "watchdog.Config.MaxHold", Got: cfg.MaxHold.String(),
			Allowed: "a positive duration, or 0 for no limit",
		}
	}
	s := &scheduler{cfg: cfg, epoch: time.Now(), groups: map[groupKey]*group{}}
	return func(inner locker.Locker) locker.Locker { return &watcher{inner, s} }, nil
}

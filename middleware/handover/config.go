package handover

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Config configures the hand-overs. The zero Config works.
type Config struct {
	// Tenure is the time after an acquire at the server for which the lock is handed over. The first
	// release after it is sent: another process has its turn. With n waiting processes each waits
	// for about n times Tenure. Default: 10 ms.
	Tenure time.Duration
}

const defaultTenure = 10 * time.Millisecond

// New returns a Middleware for hand-overs. It may wrap several Lockers; each has lines of
// its own. It belongs around watchdog and retry, as in holdfast.New. Errors: ErrInvalid.
func New(cfg Config) (locker.Middleware, error) {
	switch {
	case cfg.Tenure < 0:
		return nil, &locker.InvalidError{
			What: "handover.Config.Tenure", Got: cfg.Tenure.String(), Allowed: "a positive duration, or 0 for 10ms",
		}
	case cfg.Tenure == 0:
		cfg.Tenure = defaultTenure
	}
	return func(inner locker.Locker) locker.Locker {
		driverOf, _ := lease.Find[acquiring](inner)
		return &cohort{
			inner: inner, cfg: cfg, disabled: neverHandsOver(inner), serverQueue: lease.TraitsOf(inner).Queue, acquiring: driverOf,
			lines: map[string]*line{},
		}
	}, nil
}

// neverHandsOver reports whether the holds of l are not handed over: several requests hold a name
// together, or the owner of a hold may acquire it again.
func neverHandsOver(l locker.Locker) bool {
	traits := lease.TraitsOf(l)
	return traits.Permits > 1 || traits.Reentrant
}

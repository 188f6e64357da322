package keylock

import (
	"fmt"
	"strconv"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// LimitError reports that a semaphore has another limit than the Locker that asks for permits: its
// present holders were granted theirs by programs with another configuration. Nothing was acquired.
// It is not transient.
type LimitError struct {
	// Want is the limit of the Locker, Have that of the semaphore.
	Want, Have int
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the semaphore has a limit of %d permits, this program's is %d: "+
		"use one limit, or Config.Resize to change it", e.Have, e.Want)
}

// otherLimit returns the error of an acquire that found another limit.
func (a *keyAttempt) otherLimit(reply driver.Reply) error {
	have, err := reply.Int(1)
	if err != nil {
		return malformed(err)
	}
	return driver.Permanent(&LimitError{Want: a.l.spec.Permits, Have: int(have)})
}

// Permits implements lease.Counted.
func (l *Locker) Permits() int { return l.spec.Permits }

// Permits implements lease.Counted.
func (h *keyHold) Permits() int { return h.l.spec.Permits }

// checkPermits refuses a request for more permits than there are.
func (l *Locker) checkPermits(req locker.Request) error {
	if limit := l.spec.Permits; req.Permits > limit {
		return driver.Invalid("Request.Permits", strconv.Itoa(req.Permits),
			fmt.Sprintf("1 to %d, the permits of the semaphore", limit))
	}
	return nil
}

// checkResumePermits refuses a handle that is not one of a semaphore, and other permits than its
// own.
func (l *Locker) checkResumePermits(req locker.Request) error {
	has := l.spec.ParsePermits(req.Resume.Grant().Token)
	switch {
	case has == 0:
		return driver.Invalid("Request.Resume", "a handle of another strategy", "a handle of a lock of "+l.spec.Name)
	case req.Permits != 0 && req.Permits != has:
		return driver.Invalid("Request.Permits", strconv.Itoa(req.Permits), fmt.Sprintf("the handle's, %d, or 0", has))
	}
	return nil
}

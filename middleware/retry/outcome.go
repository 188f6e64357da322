package retry

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// expirySlack is added to a PTTL: Redis expires a key in the millisecond after its time.
const expirySlack = time.Millisecond

// outcome is the result of a failed attempt: the lock is held, or there was a transient error. The
// zero outcome is none.
type outcome struct {
	held    *locker.ContentionError
	here    lease.Hold // the holder, if it is a request of this process
	err     error
	at      time.Time
	assumed bool // no answer says so: others are ahead in the queue, or held has released it
	others  bool // of another request's attempt
}

// assumedHeld returns the outcome "held by another" for name, without an answer.
func assumedHeld(name string, now time.Time) outcome {
	return outcome{held: &locker.ContentionError{Name: name}, assumed: true, at: now}
}

// owner returns the owner known to hold the lock, or "". After a release an owner does not hold the
// lock, even during its minimum hold.
func (o outcome) owner() string {
	if o.held == nil || o.held.Released || o.assumed {
		return ""
	}
	return o.held.Owner
}

// retryAt returns the time by which to try again, by the refusal's RetryAfter; zero: unknown.
func (o outcome) retryAt() time.Time {
	if o.held == nil || o.held.RetryAfter <= 0 {
		return time.Time{}
	}
	return o.at.Add(o.held.RetryAfter + expirySlack)
}

// error returns the outcome as an error, or nil. It counts the times left from now, in milliseconds.
func (o outcome) error(now time.Time) error {
	if o.held == nil {
		return o.err
	}
	held := *o.held
	if held.Owner == "" && o.here != nil {
		held.Owner = o.here.Owner()
	}
	past := now.Sub(o.at)
	held.RetryAfter = max(held.RetryAfter-past, 0).Round(time.Millisecond)
	held.Left = max(held.Left-past, 0).Round(time.Millisecond)
	return &held
}

// history summarizes a request's own attempts.
type history struct {
	reachedServer bool // an attempt may have reached a server
	// unknownSince is the begin of the first attempt of unknown outcome after the latest refusal; zero:
	// there is none.
	unknownSince time.Time
}

// add adds an attempt begun at began, and failed with err. refused: err is "held by another".
func (h history) add(err error, refused bool, began time.Time) history {
	unknown := errors.Is(err, locker.ErrUnknownOutcome)
	h.reachedServer = h.reachedServer || refused || unknown || !errors.Is(err, driver.ErrNotSent)
	switch {
	case refused:
		h.unknownSince = time.Time{}
	case unknown && !h.unknown():
		h.unknownSince = began
	}
	return h
}

// unknown reports whether an attempt had an unknown outcome, and none was refused since.
func (h history) unknown() bool { return !h.unknownSince.IsZero() }

// mayHaveCaused reports whether the request's own attempt of unknown outcome may be the reason for o,
// an outcome of another request.
func (h history) mayHaveCaused(o outcome) bool { return h.unknown() && o.at.After(h.unknownSince) }

// report returns o as the error of the request with the history h. ErrUnknownOutcome matches only for
// the request's own attempts, ErrNotSent only if they left nothing unresolved. A refusal stays as it
// is.
func (h history) report(o outcome, now time.Time) error {
	if o.err == nil || o.held != nil {
		return o.error(now)
	}
	unknown, notSent := errors.Is(o.err, locker.ErrUnknownOutcome), errors.Is(o.err, driver.ErrNotSent)
	r := &reportedError{
		err:     o.err,
		unknown: h.unknown() || unknown && !o.others,
		notSent: notSent && !h.unknown() && (!h.reachedServer || !o.others),
	}
	if r.unknown == unknown && r.notSent == notSent {
		return o.err
	}
	return r
}

// contention returns the ContentionError of err, or nil if err is not a refusal.
func contention(name string, err error) *locker.ContentionError {
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		return held
	}
	if errors.Is(err, locker.ErrNotAcquired) {
		return &locker.ContentionError{Name: name}
	}
	return nil
}

// nothingRan reports whether err proves that no send of the attempt was executed.
func nothingRan(err error) bool {
	return driver.NotExecuted(err) && !errors.Is(err, locker.ErrUnknownOutcome)
}

// replaces reports whether failed replaces known, the outcome before, as the result of an acquire.
// The attempt of failed was cut off: its ctx ended with the error ended and the cause cause. The
// bare end of ctx does not replace a refusal: the attempt is cleaned up, the caller holds nothing,
// and the holder is the reason. Any other error in failed does.
func replaces(known outcome, failed, ended, cause error) bool {
	switch {
	case !consistsOf(failed, ended, cause):
		return true
	case known.held != nil:
		return false
	case errors.Is(failed, locker.ErrUnknownOutcome):
		return true
	default: // nothing was executed
		_, silent := known.err.(*silenceError) //nolint:errorlint // made by known
		return (known.err == nil || silent) && errors.Is(failed, driver.ErrNotSent)
	}
}

// heldHere reports whether the holder is a request of this process whose Deadline has not passed.
func (o outcome) heldHere(now time.Time) bool {
	if o.here == nil {
		return false
	}
	end := o.here.Deadline()
	return end.IsZero() || now.Before(end)
}

// consistsOf reports whether every leaf of err's tree is the end of ctx or an unknown outcome.
func consistsOf(err, ended, cause error) bool {
	switch e := err.(type) { //nolint:errorlint // it walks the tree
	case interface{ Unwrap() error }:
		return consistsOf(e.Unwrap(), ended, cause)
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !consistsOf(part, ended, cause) {
				return false
			}
		}
		return true
	case interface{ Timeout() bool }: // a client has a deadline of its own from ctx
		return e.Timeout() && errors.Is(ended, context.DeadlineExceeded) || errors.Is(ended, err)
	default:
		return err != nil && (errors.Is(ended, err) || errors.Is(cause, err) ||
			err == locker.ErrUnknownOutcome) //nolint:errorlint // a leaf
	}
}

// wrap puts err into an OpError unless it is in one.
func wrap(req locker.Request, err error) error {
	if _, ok := errors.AsType[*locker.OpError](err); ok {
		return err
	}
	return opError(req, err)
}

func opError(req locker.Request, err error) error {
	op := "acquire"
	if !req.Resume.IsZero() {
		op = "resume"
	}
	return &locker.OpError{Op: op, Name: req.Name, Err: err}
}

// bare takes err out of its OpError.
func bare(err error) error {
	if op, ok := errors.AsType[*locker.OpError](err); ok {
		return op.Err
	}
	return err
}

package retry

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// expirySlack is what Redis needs beyond a PTTL: a key expires in the millisecond after its time.
const expirySlack = time.Millisecond

// outcome is what an attempt found out: the lock is held, or there was an error that may pass. The
// zero outcome is none.
type outcome struct {
	held    *locker.ContentionError
	here    lease.Hold // the holder, if it is a request of this process
	err     error
	at      time.Time
	assumed bool // no answer said so: others are ahead in the queue, or held has released it
	others  bool // it is of an attempt of another request
}

// assumedHeld is the outcome that name is held by another, though no answer says so.
func assumedHeld(name string, now time.Time) outcome {
	return outcome{held: &locker.ContentionError{Name: name}, assumed: true, at: now}
}

// owner returns the owner that is known to hold the lock; "": none is known. One that has released
// it holds it no more, even if its minimum hold lasts.
func (o outcome) owner() string {
	if o.held == nil || o.held.Released || o.assumed {
		return ""
	}
	return o.held.Owner
}

// leaseEnd is when the holder's lease will be over unless renewed; zero: unknown.
func (o outcome) leaseEnd() time.Time {
	if o.held == nil || o.held.RetryAfter <= 0 {
		return time.Time{}
	}
	return o.at.Add(o.held.RetryAfter + expirySlack)
}

// error is the outcome as of now, in whole milliseconds as Redis counts them; nil for none.
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

// history is what is known of a request's own outcome from its attempts.
type history struct {
	sent    bool      // one of them may have reached a server
	unknown bool      // one of them had an unknown outcome, and none was refused since
	since   time.Time // when the first such attempt began
}

// add adds the error of an attempt that began at the time began. refused: it is "held by another".
func (h history) add(err error, refused bool, began time.Time) history {
	unknown := errors.Is(err, locker.ErrUnknownOutcome)
	h.sent = h.sent || refused || unknown || !errors.Is(err, driver.ErrNotSent)
	switch {
	case refused:
		h.unknown = false
	case unknown && !h.unknown:
		h.unknown, h.since = true, began
	}
	return h
}

// mayHaveCaused reports whether o, of an attempt of another request, may be a refusal by what an attempt
// of unknown outcome left.
func (h history) mayHaveCaused(o outcome) bool { return h.unknown && o.at.After(h.since) }

// report returns o as the error of the request whose history is h: ErrUnknownOutcome is about that
// request's own attempts, and ErrNotSent does not match if it may have sent something unresolved.
// An o that says who holds the lock stays as it is.
func (h history) report(o outcome, now time.Time) error {
	if o.err == nil || o.held != nil {
		return o.error(now)
	}
	unknown, notSent := errors.Is(o.err, locker.ErrUnknownOutcome), errors.Is(o.err, driver.ErrNotSent)
	r := &reportedError{
		err:     o.err,
		unknown: h.unknown || unknown && !o.others,
		notSent: notSent && !h.unknown && (!h.sent || !o.others),
	}
	if r.unknown == unknown && r.notSent == notSent {
		return o.err
	}
	return r
}

// contention returns what err says of the holder, or nil where err is no refusal.
func contention(name string, err error) *locker.ContentionError {
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		return held
	}
	if errors.Is(err, locker.ErrNotAcquired) {
		return &locker.ContentionError{Name: name}
	}
	return nil
}

// nothingRan reports whether err proves that nothing ran, neither in this send nor in an earlier one of
// the same attempt.
func nothingRan(err error) bool {
	return driver.NotExecuted(err) && !errors.Is(err, locker.ErrUnknownOutcome)
}

// replaces reports whether failed, the error of an attempt during which ctx ended (as ended and
// cause), is a better result of an acquire than known, the outcome before. If another holds the
// lock it is not: the attempt is cleaned up, so the caller holds nothing, and the holder is why.
func replaces(known outcome, failed, ended, cause error) bool {
	switch {
	case !consistsOf(failed, ended, cause):
		return true
	case known.held != nil:
		return false
	case errors.Is(failed, locker.ErrUnknownOutcome):
		return true
	default: // nothing was sent
		_, silent := known.err.(*silenceError) //nolint:errorlint // made by known
		return (known.err == nil || silent) && errors.Is(failed, driver.ErrNotSent)
	}
}

// heldHere reports whether this process knows without asking that the lock is held: by one of its
// own requests.
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

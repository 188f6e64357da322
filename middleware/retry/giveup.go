package retry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// What ends a waiting other than a ctx. They are texts, not sentinels: the outcome is what a caller
// decides by.
var (
	errMaxAttempts = errors.New("MaxAttempts reached")
	errPolicy      = errors.New("the backoff policy stopped")
)

// giveUpError is what a waiting comes to that found nothing but outcomes that might have passed.
type giveUpError struct {
	outcome  error // the last known; nil: none
	before   error // the one before, where the last says no more than that time was over
	why      error
	attempts int
	waited   time.Duration
}

// Error implements error.
func (e *giveUpError) Error() string {
	outcome := e.outcome
	if e.before != nil {
		outcome = e.before
	}
	if failed, ok := outcome.(*locker.AttemptError); ok { //nolint:errorlint // not one of many, as of a quorum
		return e.unanswered(failed)
	}
	var b strings.Builder
	if outcome != nil {
		b.WriteString(outcome.Error())
		switch reported, is := e.outcome.(*reportedError); { //nolint:errorlint // made by report
		case is && reported.addsUnknown():
			b.WriteString("; the outcome of an earlier attempt is unknown")
		case e.before != nil && errors.Is(e.outcome, locker.ErrUnknownOutcome):
			b.WriteString("; the outcome of the last attempt is unknown")
		}
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "gave up after %v", e.waited.Round(time.Millisecond))
	switch e.attempts {
	case 0:
		b.WriteString(" behind others of this process, without an attempt")
	default:
		b.WriteString(" and " + attempts(e.attempts))
	}
	b.WriteString(": " + e.why.Error())
	return b.String()
}

// unanswered is the text where a server failed: the time says that it was over, and anything else
// that ended the waiting is added.
func (e *giveUpError) unanswered(failed *locker.AttemptError) string {
	remarks := " (" + attempts(e.attempts) + ")"
	cause := failed.Cause()
	if errors.Is(e.why, cause) {
		cause = nil // ctx's own
	}
	if cause != nil && !errors.Is(e.why, locker.ErrMaxWait) && !errors.Is(e.why, context.DeadlineExceeded) {
		remarks += ", " + e.why.Error()
	}
	text := failed.Text(e.waited, remarks, errors.Is(e, locker.ErrUnknownOutcome))
	if cause == nil {
		text += ": " + e.why.Error()
	}
	return text
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprint(n, " attempts")
}

// Unwrap makes the outcomes and what ended the waiting match.
func (e *giveUpError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.outcome, e.before, e.why}, func(err error) bool { return err == nil })
}

// silenceError says that no attempt of the queue has been answered for a while.
type silenceError struct {
	server  string
	silence time.Duration
	known   outcome // of the last attempt that was answered
	now     time.Time
}

// Error implements error.
func (e *silenceError) Error() string {
	text := e.Unwrap().Error()
	if e.known.held != nil && !e.known.assumed {
		text += fmt.Sprintf("; the last answer, %v ago: %v", e.now.Sub(e.known.at).Round(time.Millisecond),
			e.known.held)
	}
	return text
}

// Unwrap returns a *locker.AttemptError. What was known of the holder is not matched: it is old.
func (e *silenceError) Unwrap() error { return locker.NewAttemptError(e.server, e.silence, nil) }

// reportedError is err, except that it matches ErrUnknownOutcome and ErrNotSent as is true of the
// request that reports it.
type reportedError struct {
	err              error
	unknown, notSent bool
}

// Error implements error.
func (e *reportedError) Error() string { return e.err.Error() }

// Is matches what the error matches, but for the two.
func (e *reportedError) Is(target error) bool {
	switch target {
	case locker.ErrUnknownOutcome:
		return e.unknown
	case driver.ErrNotSent:
		return e.notSent
	default:
		return errors.Is(e.err, target)
	}
}

// As finds what is in the error.
func (e *reportedError) As(target any) bool { return errors.As(e.err, target) }

// addsUnknown reports whether the text does not say that the outcome is unknown.
func (e *reportedError) addsUnknown() bool {
	return e.unknown && !errors.Is(e.err, locker.ErrUnknownOutcome)
}

// giveUp is the error of an acquisition that ends because of why.
func (a *acquisition) giveUp(why error) error {
	return a.giveUpWith(a.known(time.Now()), outcome{}, why)
}

// giveUpWith is giveUp where known is known, and before before an attempt that was cut off.
func (a *acquisition) giveUpWith(known, before outcome, why error) error {
	now := time.Now()
	return opError(a.req, &giveUpError{
		outcome: a.history.report(known, now), before: a.history.report(before, now), why: why,
		attempts: a.attempts, waited: now.Sub(a.start),
	})
}

// GaveUp implements lease.Queueing.
func (r *retrier) GaveUp(name string, began time.Time, why error) error {
	now := time.Now()
	known, outage := r.queues.known(name, now)
	known = r.orOutage(known, outage, now)
	known.others = true
	return &giveUpError{outcome: history{}.report(known, now), why: why, waited: now.Sub(began)}
}

// awaitEnd waits for the end of ctx, whose time is over, and says why it ended. Those behind in the
// queue need not wait for that.
func (a *acquisition) awaitEnd() error {
	if a.place != nil {
		a.place.leave()
	}
	<-a.ctx.Done()
	return ended(a.ctx, a.caller)
}

// ended says why ctx, which is caller's or bounds it by MaxWait, ended; nil: it did not.
func ended(ctx, caller context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case caller.Err() == nil:
		return locker.ErrMaxWait
	default:
		return locker.ContextErr(caller)
	}
}

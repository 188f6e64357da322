package retry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Reasons to give up other than a ctx. They are texts, not sentinels: callers decide by the outcome.
var (
	errMaxAttempts = errors.New("MaxAttempts reached")
	errPolicy      = errors.New("the backoff policy stopped")
)

// giveUpError is returned when a wait ends and every attempt was refused or failed transiently.
type giveUpError struct {
	outcome  error // the last known; nil: none
	before   error // the outcome before an attempt cut off by the end of ctx
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
	if failed, ok := outcome.(*lockerrors.AttemptError); ok { //nolint:errorlint // not one of many, as of a quorum
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

// unanswered returns the text for a server without an answer. It names e.why as the cause if there is
// no other. Else it adds e.why, unless the time was over: the duration shows it.
func (e *giveUpError) unanswered(failed *lockerrors.AttemptError) string {
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

// Unwrap returns the outcomes and the reason to give up.
func (e *giveUpError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.outcome, e.before, e.why}, func(err error) bool { return err == nil })
}

// silenceError reports an outage: no attempt of the queue has been answered for silence.
type silenceError struct {
	server  string
	silence time.Duration
	known   outcome // of the last answered attempt
	now     time.Time
}

// Error implements error.
func (e *silenceError) Error() string {
	text := e.Unwrap().Error()
	if held := e.Refusals(); held != nil {
		text += fmt.Sprintf("; the last answer, %v ago: %v", e.now.Sub(e.known.at).Round(time.Millisecond), held[0])
	}
	return text
}

// Refusals returns the refusal in the text, if any, for middleware that hides its owner.
func (e *silenceError) Refusals() []*locker.ContentionError {
	if e.known.held == nil || e.known.assumed {
		return nil
	}
	return []*locker.ContentionError{e.known.held}
}

// Unwrap returns a *lockerrors.AttemptError. The last known holder is not matched: it is old.
func (e *silenceError) Unwrap() error { return lockerrors.NewAttemptError(e.server, e.silence, nil) }

// reportedError is err, but matches ErrUnknownOutcome and ErrNotSent according to the attempts of the
// reporting request.
type reportedError struct {
	err              error
	unknown, notSent bool
}

// Error implements error.
func (e *reportedError) Error() string { return e.err.Error() }

// Is reports whether err matches target; unknown and notSent decide for the two.
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

// As finds target in err.
func (e *reportedError) As(target any) bool { return errors.As(e.err, target) }

// Refusals returns those of a silenceError.
func (e *reportedError) Refusals() []*locker.ContentionError {
	if silent, ok := errors.AsType[*silenceError](e.err); ok {
		return silent.Refusals()
	}
	return nil
}

// addsUnknown reports whether the outcome is unknown but err, and so its text, does not say it.
func (e *reportedError) addsUnknown() bool {
	return e.unknown && !errors.Is(e.err, locker.ErrUnknownOutcome)
}

// giveUp returns the error of an acquisition ended by why, with the latest known outcome.
func (a *acquisition) giveUp(why error) error {
	return a.giveUpWith(a.known(time.Now()), outcome{}, why)
}

// giveUpWith is giveUp with the outcome known. before is the outcome before a cut-off attempt.
func (a *acquisition) giveUpWith(known, before outcome, why error) error {
	now := time.Now()
	return opError(a.req, &giveUpError{
		outcome: a.history.report(known, now), before: a.history.report(before, now), why: why,
		attempts: a.attempts, waited: now.Sub(a.start),
	})
}

// GaveUp returns the error of a request for name that waited since began in middleware around this,
// such as middleware/handover, and gave up because of why. The error names the last known holder or
// outage.
func (r *retrier) GaveUp(name string, began time.Time, why error) error {
	now := time.Now()
	known, outage := r.queues.known(name, now)
	known = r.orOutage(known, outage, now)
	known.others = true
	return &giveUpError{outcome: history{}.report(known, now), why: why, waited: now.Sub(began)}
}

// awaitEnd waits for the end of ctx, after its deadline, and returns the reason. It leaves the queue
// first, to let the waiters behind go on.
func (a *acquisition) awaitEnd() error {
	if a.waiter != nil {
		a.waiter.leave()
	}
	<-a.ctx.Done()
	return ended(a.ctx, a.caller)
}

// ended returns the reason why ctx ended, or nil. ctx is caller, or caller bounded by MaxWait.
func ended(ctx, caller context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case caller.Err() == nil:
		return locker.ErrMaxWait
	default:
		return lease.ContextErr(caller)
	}
}

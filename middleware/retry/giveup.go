package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// What ends a waiting other than a ctx. They are texts, not sentinels: the outcome is what a caller decides by.
var (
	errMaxAttempts = errors.New("MaxAttempts reached")
	errPolicy      = errors.New("the backoff policy stopped")
)

// giveUpError is what a waiting comes to that found nothing but outcomes that might have passed.
type giveUpError struct {
	outcome  error // the last known; nil: none
	why      error
	attempts int
	waited   time.Duration
}

// Error implements error.
func (e *giveUpError) Error() string {
	var b strings.Builder
	if e.outcome != nil {
		b.WriteString(e.outcome.Error() + "; ")
	}
	fmt.Fprintf(&b, "gave up after %v", e.waited.Round(time.Millisecond))
	switch e.attempts {
	case 0:
		b.WriteString(" behind others of this process, without an attempt")
	case 1:
		b.WriteString(" and 1 attempt")
	default:
		fmt.Fprintf(&b, " and %d attempts", e.attempts)
	}
	b.WriteString(": " + e.why.Error())
	return b.String()
}

// Unwrap makes the outcome and what ended the waiting match.
func (e *giveUpError) Unwrap() []error {
	if e.outcome == nil {
		return []error{e.why}
	}
	return []error{e.outcome, e.why}
}

// giveUp is the error of an acquisition that ends because of why.
func (a *acquisition) giveUp(why error) error {
	now := time.Now()
	return opError(a.req, &giveUpError{outcome: a.known(now).error(now), why: why, attempts: a.attempts, waited: now.Sub(a.start)})
}

// ended says why ctx, which is caller's or bounds it by MaxWait, ended; nil: it did not.
func ended(ctx, caller context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case caller.Err() == nil:
		return locker.ErrMaxWait
	}
	err, cause := caller.Err(), context.Cause(caller)
	if errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

package locker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// TestContextErr checks that what the cause of a context says of another lock is kept as text, and
// that any other cause matches.
func TestContextErr(t *testing.T) {
	t.Parallel()
	if err := locker.ContextErr(t.Context()); err != nil {
		t.Errorf("error %v of a context that lasts", err)
	}
	errShutdown := errors.New("shutting down")
	of := func(err error) error {
		return fmt.Errorf("task 3: %w", &locker.OpError{Op: "acquire", Name: "other", Err: err})
	}
	type test struct {
		cause  error
		target error
		match  bool
	}
	check.Each(t, map[string]test{
		"cancelled":                          {context.Canceled, context.Canceled, true},
		"foreign":                            {errShutdown, errShutdown, true},
		"foreign, a deadline":                {fmt.Errorf("query: %w", context.DeadlineExceeded), context.DeadlineExceeded, true},
		"MaxWait itself":                     {locker.ErrMaxWait, locker.ErrMaxWait, true},
		"MaxWait of another acquire":         {of(locker.ErrMaxWait), locker.ErrMaxWait, false},
		"contention":                         {&locker.ContentionError{Name: "other"}, locker.ErrNotAcquired, false},
		"not held":                           {locker.ErrNotHeld, locker.ErrNotHeld, false},
		"lost":                               {&locker.LostError{Name: "other"}, locker.ErrLost, false},
		"released":                           {locker.ErrReleased, locker.ErrReleased, false},
		"unknown outcome":                    {fmt.Errorf("task 3: %w", locker.ErrUnknownOutcome), locker.ErrUnknownOutcome, false},
		"replicas":                           {&locker.ReplicaError{}, locker.ErrNotReplicated, false},
		"invalid":                            {locker.ErrInvalid, locker.ErrInvalid, false},
		"closed":                             {locker.ErrClosed, locker.ErrClosed, false},
		"not sent":                           {driver.NotSent(errShutdown), driver.ErrNotSent, false},
		"permanent":                          {driver.Permanent(errShutdown), driver.ErrPermanent, false},
		"a foreign error of another acquire": {of(errShutdown), errShutdown, false},
		"joined":                             {errors.Join(errShutdown, locker.ErrLost), locker.ErrLost, false},
	}, func(t *testing.T, tt test) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tt.cause)
		err := locker.ContextErr(ctx)
		if !errors.Is(err, context.Canceled) || errors.Is(err, tt.target) != tt.match {
			t.Errorf("error %v, want one that matches context.Canceled, and the cause: %v", err, tt.match)
		}
		if !strings.Contains(err.Error(), tt.cause.Error()) {
			t.Errorf("error %v does not name the cause %q", err, tt.cause)
		}
	})
}

// TestContextErrHidesServerErrors checks that the error reply to another command is not found: what
// was or was not executed is decided by its code.
func TestContextErrHidesServerErrors(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"WRONGTYPE wrong kind of value", "LOADING loading", "ERR something else"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(&driver.ServerError{Text: reply})
		if err := locker.ContextErr(ctx); driver.CodeOf(err) != "" || driver.NotExecuted(err) {
			t.Errorf("the reply %q to another command was taken for this one's: %v", reply, err)
		}
	}
}

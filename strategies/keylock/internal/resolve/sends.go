package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

const (
	resendMin = 5 * time.Millisecond
	resendMax = 500 * time.Millisecond
)

// Sends sends one command until its outcome is known. The zero value with Timeout set is ready for
// one Resolve.
type Sends struct {
	// Timeout bounds each send.
	Timeout time.Duration
	// Limit bounds the resending: no send begins later than this after the first. Zero: ctx alone.
	Limit time.Duration
	// Urgent marks the sends as urgent for the driver ([driver.Urgent]).
	Urgent bool
	// Patience, if not nil, ends the resending; ctx then bounds each send alone. A command that
	// could not be sent within its Timeout is then resent too.
	Patience context.Context //nolint:containedctx // a second context, of the same call

	// UntilClose, if not nil, ends the resending: driver.Driver.UntilClose.
	UntilClose context.Context //nolint:containedctx // as Patience

	// ReadLate is for a command that makes a hold. It returns the meaning of a late reply without
	// an error. It may be called at any time, also after Resolve. Nil: late replies are not read.
	ReadLate func(v any) Verdict

	// N counts the sends, Open those without a reply.
	N, Open int
	// Unanswered tracks the open sends if there is a ReadLate; nil if there were none.
	Unanswered *Unanswered
	// First, Last and FirstOpen are the begins of sends: of the first one, the last one, and the
	// first one without a reply.
	First, Last, FirstOpen time.Time
}

// Resolve calls send, and calls it again as long as a send is open and ctx and Limit allow: after 5
// ms doubling to 500 ms. It also resends after TRYAGAIN (a slot on the move), and with Patience
// after a Timeout without a send. send sends the command once, within its ctx, and returns the
// driver's error. The command must be safe to resend.
//
// Neither s nor send escapes: a command is resolved without an allocation for them.
//
// The error is nil once a send was answered. If no send is open, it is the error of the last one.
// Else it matches locker.ErrUnknownOutcome, the last error, and ctx's if ctx ended the resending.
// Resolve does not resend after driver.Interrupted, which matches locker.ErrUnknownOutcome too, nor
// after driver.WaitRefused.
func (s *Sends) Resolve(ctx context.Context, send func(ctx context.Context) error) error {
	patience := s.Patience
	if patience == nil {
		patience = ctx
	}
	for delay := time.Duration(0); ; {
		err := s.send(ctx, send)
		switch {
		case err == nil:
			return nil
		case driver.Interrupted(err): // half of it may be written; nothing more will be
			return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
		case !driver.NotExecuted(err):
			s.addOpen(err)
			if driver.WaitRefused(err) {
				return s.classify(err) // resent it would only be executed again
			}
		case s.Open == 0 && !s.resendsUnexecuted(patience, err), !driver.Transient(err):
			if errors.Is(err, driver.ErrNotSent) && ended(patience) && errors.Is(err, patience.Err()) {
				err = driver.NotSent(withDial(lease.ContextErr(patience), err))
			}
			return s.classify(err)
		}
		delay = min(max(resendMin, 2*delay), resendMax)
		if s.over(patience, delay) || !wait(patience, delay) || s.over(patience, 0) {
			return s.giveUp(patience, err)
		}
	}
}

// resendsUnexecuted reports whether a command is resent although err proves that it was not
// executed.
func (s *Sends) resendsUnexecuted(patience context.Context, err error) bool {
	if driver.CodeOf(err) == "TRYAGAIN" {
		return true
	}
	return s.Patience != nil && errors.Is(err, driver.ErrNotSent) && errors.Is(err, context.DeadlineExceeded) &&
		!ended(patience)
}

// withDial adds the failed dial in err, if there is one, to ended.
func withDial(ended, err error) error {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" && !dial.Timeout() {
		return fmt.Errorf("%w: %w", ended, dial)
	}
	return ended
}

// lateTimer bounds the delay of a context's end after its Deadline.
const lateTimer = 100 * time.Millisecond

// ended reports whether ctx has ended. If the Deadline has passed, ended waits for ctx's timer, so
// that the cause is known.
func ended(ctx context.Context) bool {
	if end, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(end) {
		wait(ctx, lateTimer)
	}
	return ctx.Err() != nil
}

// over reports whether no send may begin after delay.
func (s *Sends) over(patience context.Context, delay time.Duration) bool {
	return s.Limit > 0 && time.Since(s.First)+delay >= s.Limit || patience.Err() != nil ||
		s.closing()
}

// closing reports whether Close of the driver has begun.
func (s *Sends) closing() bool { return s.UntilClose != nil && s.UntilClose.Err() != nil }

// addOpen counts a send without a reply.
func (s *Sends) addOpen(err error) {
	if s.Open++; s.Open == 1 {
		s.FirstOpen = s.Last
	}
	if s.ReadLate == nil {
		return
	}
	if s.Unanswered == nil {
		s.Unanswered = new(Unanswered)
	}
	s.Unanswered.Add(err, s.ReadLate)
}

// send makes one send.
func (s *Sends) send(ctx context.Context, send func(ctx context.Context) error) error {
	s.Last = time.Now()
	if s.N == 0 {
		s.First = s.Last
	}
	s.N++
	timeout := s.Timeout
	if s.Limit > 0 {
		timeout = min(timeout, s.Limit-s.Last.Sub(s.First))
	}
	bound := &bounded.Context{IsUrgent: s.Urgent} // the driver may keep it
	bound.Start(ctx, s.Last.Add(timeout))
	defer bound.Stop()
	return send(bound)
}

// classify wraps err in ErrUnknownOutcome if a send is open.
func (s *Sends) classify(err error) error {
	if s.Open == 0 {
		return err
	}
	if errors.Is(err, driver.ErrNotSent) {
		return fmt.Errorf("%w: an earlier send was not answered; the last one: %w", locker.ErrUnknownOutcome, err)
	}
	return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
}

// giveUp returns err with its class and, if patience or Close ended the resending, the reason.
func (s *Sends) giveUp(patience context.Context, err error) error {
	switch ended := lease.ContextErr(patience); {
	case ended == nil && s.closing():
		err = fmt.Errorf("%w: %w", driver.ErrClosed, err)
	case ended == nil:
	case s.Open == 0 && errors.Is(err, driver.ErrNotSent):
		err = driver.NotSent(withDial(ended, err))
	case errors.Is(err, patience.Err()):
		err = ended
	default:
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return s.classify(err)
}

// wait waits for d and reports whether ctx lasted.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package keylock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// keyAttempt is one acquire or resume, with all its sends. Its hold outlives it.
type keyAttempt struct {
	*keyHold
	req      locker.Request // Note and MinHold are those of the hold
	sends    resolve.Sends
	waiter   waiter
	answered *scriptCall // the last call of a script; nil if SET NX was answered

	byEarlierSend bool      // not the last send made the hold
	leaseStart    time.Time // when the send that made the hold began
	fence         int64
}

// newAttempt prepares an attempt for a checked request.
func (l *Locker) newAttempt(ctx context.Context, key string, req locker.Request) keyAttempt {
	handed, permits := req.Resume.Info(), max(req.Permits, 1)
	if handed.Token != "" {
		if l.spec.ParseValue != nil {
			owner, note := l.spec.ParseValue(handed.Token)
			req.Owner, req.Note = cmp.Or(req.Owner, owner), cmp.Or(req.Note, note)
		}
		if l.spec.Permits > 0 {
			permits = l.spec.ParsePermits(handed.Token)
		}
	}
	req.MinHold = max(req.MinHold, handed.MinHold).Truncate(time.Millisecond)
	value := l.spec.newValue(req.Owner, req.Note, permits)
	a := keyAttempt{req: req, keyHold: &keyHold{
		l: l, key: key, acquired: value, value: value, replaced: handed.Token,
		owner: cmp.Or(req.Owner, handed.Owner), ttl: max(l.cfg.ttl(cmp.Or(req.TTL, handed.TTL)), req.MinHold),
	}}
	a.timeout = l.cfg.attemptTimeout(a.ttl)
	if req.Fenced || handed.Fence != 0 {
		a.counter = l.spec.counterKey(key)
	}
	if l.spec.Shared || l.spec.Queue {
		a.waiter = waiterOf(ctx, req)
	}
	a.sends = resolve.Sends{
		UntilClose: l.drv.UntilClose(), Timeout: a.timeout, Limit: resolve.OpenFor(a.ttl), Urgent: a.resumes(),
		ReadLate: readLate,
	}
	if req.NoWait && req.MaxWait == 0 {
		a.sends.Limit = a.timeout
	}
	return a
}

// run makes the attempt. Unless it acquires the lock, it leaves nothing behind, or cleans up in the
// background.
func (a *keyAttempt) run(ctx context.Context) error {
	err := a.sends.Resolve(ctx, a.send)
	a.unanswered, a.openUntil = a.sends.Unanswered, a.sends.Last.Add(resolve.OpenFor(a.ttl))
	if err == nil && a.answered != nil {
		err = a.read(a.answered.reply)
	}
	if err == nil {
		if err = a.confirm(ctx); err != nil {
			a.cleanUpKnown(a.acquired, a.undoOp())
		}
		return err
	}
	switch {
	case driver.Interrupted(err), errors.Is(err, errMalformed):
		a.cleanUpKnown(a.acquired, a.undoOp()) // half of the hold may be there, even without an end of its lease
	case !a.unanswered.Settled():
		a.cleanUp(a.unanswered, a.acquired, a.undoOp())
	}
	return err
}

// send sends the attempt once: SET NX, and after its refusal the script, or the script alone.
func (a *keyAttempt) send(ctx context.Context) error {
	if a.beginsWithSetNX() {
		set, err := a.l.drv.SetNX(ctx, a.key, a.acquired, a.ttl)
		if set || err != nil {
			return err
		}
		a.sends.N, a.sends.Last = a.sends.N+1, time.Now()
	}
	call := a.acquireCall()
	a.answered = &call
	return call.send(ctx)
}

// beginsWithSetNX reports whether the next command is SET NX. Resends need the script, to find the
// result of an earlier send, and waiters need it for their place in the queue.
func (a *keyAttempt) beginsWithSetNX() bool {
	return a.l.spec.SetNX && a.l.cfg.MinReplicas == 0 && !a.resumes() && !a.fenced() && a.sends.N == 1 &&
		(a.waiter.ID == "" || a.waiter.Free) && !a.l.cfg.Fair
}

// readLate returns the meaning of a late reply to an attempt.
func readLate(v any) resolve.Verdict {
	switch v := v.(type) {
	case bool: // of SET NX
		if v {
			return resolve.Acquired
		}
		return resolve.Refused
	case driver.Reply:
		switch status, err := v.Int(0); {
		case err != nil:
		case status == replyYes:
			return resolve.Acquired
		case slices.Contains(answersOfAcquire, status):
			return resolve.Refused
		}
	}
	return resolve.Unclear
}

// answersOfAcquire are the statuses of Acquire and Resume.
var answersOfAcquire = []int64{replyYes, replyAlready, replyNo, replyLimit, replyCounter, replyForeign}

// read reads the reply of Acquire or Resume.
func (a *keyAttempt) read(reply driver.Reply) error {
	status, err := readStatus(reply, a.key, a.counter, answersOfAcquire...)
	switch {
	case err != nil:
		return err
	case status == replyLimit:
		have, err := reply.Int(1)
		if err != nil {
			return malformed(err)
		}
		return driver.Permanent(&LimitError{Want: a.l.spec.Permits, Have: int(have)})
	case status == replyNo && a.resumes():
		return locker.ErrNotHeld
	case status == replyNo:
		return a.refused(reply)
	}
	if a.fence, err = a.readOwnFence(reply); err != nil {
		return err
	}
	if a.l.spec.Convert != nil {
		conversions, err := readConversions(reply)
		if err != nil {
			return err
		}
		a.conversions.Store(conversions)
	}
	if a.byEarlierSend = status == replyAlready; a.byEarlierSend {
		a.unanswered.Executed()
	}
	return nil
}

// refused returns the refusal in a reply. Its text mentions the single attempt, unless the caller
// asked for one.
func (a *keyAttempt) refused(reply driver.Reply) error {
	err := a.refusal(reply)
	held, ok := err.(*locker.ContentionError) //nolint:errorlint // refusal made it
	if !ok {
		return err
	}
	held.Fair = a.l.cfg.Fair
	held.Queue = a.l.spec.Queue && a.req.Mode == locker.Exclusive && !a.waiter.Quorum
	if a.req.NoWait {
		return err
	}
	return fmt.Errorf("%w; one attempt was made, middleware/retry waits", err)
}

// confirm sets the Deadline. It returns an error if that has passed, or if too few replicas have
// acknowledged the hold.
func (a *keyAttempt) confirm(ctx context.Context) error {
	if a.leaseStart = a.sends.Last; a.byEarlierSend {
		a.leaseStart = a.sends.First
	}
	a.deadline = deadlineOf(a.leaseStart, a.ttl)
	if err := a.checkDeadline(); err != nil || a.l.cfg.MinReplicas == 0 {
		return err
	}
	if err := a.acknowledged(ctx, a.answered, a.byEarlierSend); err != nil {
		return err
	}
	return a.checkDeadline()
}

// checkDeadline returns an error if the Deadline has passed.
func (a *keyAttempt) checkDeadline() error {
	if time.Now().Before(a.deadline) {
		return nil
	}
	return fmt.Errorf("%w: the answer came %v after the send, past the lease; the attempt was undone",
		locker.ErrLost, time.Since(a.leaseStart).Round(time.Millisecond))
}

// describe adds the server to a transient error without an answer about the lock, and the key to
// WRONGTYPE.
func (a *keyAttempt) describe(err error) error {
	switch {
	case driver.CodeOf(err) == "WRONGTYPE":
		return fmt.Errorf("key %.64q is of another type, as of another strategy's lock; it was left alone: %w", a.key,
			err)
	case !driver.Transient(err), errors.Is(err, locker.ErrNotAcquired), errors.Is(err, locker.ErrNotHeld),
		errors.Is(err, locker.ErrNotReplicated):
		return err
	}
	return lockerrors.NewAttemptError(a.l.drv.Info().Address, time.Since(a.sends.First), err)
}

// undoIfClosing returns err. If the attempt acquired the lock while the driver is closing, it
// undoes the acquire and returns ErrClosed: the lock could not be renewed or released.
func (a *keyAttempt) undoIfClosing(err error) error {
	if err != nil || a.sends.UntilClose.Err() == nil {
		return err
	}
	a.cleanUpKnown(a.acquired, a.undoOp())
	return driver.ErrClosed
}

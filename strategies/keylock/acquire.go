package keylock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// keyAttempt is one acquire or resume, with all its sends. The hold that it makes outlives it.
type keyAttempt struct {
	*keyHold
	sends  resolve.Sends
	note   string
	mode   locker.Mode
	noWait bool
	waiter waiter

	sent     int         // how many commands were sent
	last     time.Time   // when the last one was sent
	answered *scriptCall // the last call of a script; nil if SET NX was answered

	won   time.Time // when the command was sent from which the lease counts
	own   bool      // an earlier send made the hold
	fence int64
}

// newAttempt prepares an attempt on behalf of req, whose fields were checked.
func (l *Locker) newAttempt(ctx context.Context, key string, req locker.Request) keyAttempt {
	owner, note, ttl, permits := req.Owner, req.Note, req.TTL, max(req.Permits, 1)
	a := keyAttempt{keyHold: &keyHold{l: l, name: req.Name, key: key, shared: req.Mode == locker.Shared},
		mode: req.Mode, noWait: req.NoWait}
	if g := req.Resume.Grant(); g.Token != "" {
		a.replaced = g.Token
		if l.spec.ParseValue != nil {
			oldOwner, oldNote := l.spec.ParseValue(g.Token)
			owner, note = cmp.Or(owner, oldOwner), cmp.Or(note, oldNote)
		}
		if l.spec.Permits > 0 {
			permits = l.spec.ParsePermits(g.Token)
		}
		a.owner, ttl = g.Owner, cmp.Or(ttl, g.TTL)
	}
	a.owner, a.note, a.value = cmp.Or(owner, a.owner), note, l.spec.newValue(owner, note, permits)
	a.minHold = max(req.MinHold, req.Resume.Grant().MinHold).Truncate(time.Millisecond)
	a.ttl = max(l.cfg.ttl(ttl), a.minHold)
	a.timeout = l.cfg.attemptTimeout(a.ttl)
	if req.Fenced || req.Resume.Fence() != 0 {
		a.counter = counterKey(key)
	}
	if l.spec.Shared || l.spec.Queue {
		a.waiter = waiterOf(ctx, req)
	}
	a.sends.UntilClose = l.drv.UntilClose()
	a.sends.Timeout, a.sends.Limit, a.sends.Urgent = a.timeout, resolve.OpenFor(a.ttl), a.resumes()
	a.sends.ReadLate = readLate
	if req.NoWait && req.MaxWait == 0 {
		a.sends.Limit = a.timeout
	}
	return a
}

// run makes the attempt. Unless it acquires the lock, it leaves nothing behind, or cleans up in the
// background.
func (a *keyAttempt) run(ctx context.Context) error {
	err := a.sends.Resolve(ctx, a.send)
	a.unanswered, a.openUntil = a.sends.Unanswered, a.last.Add(resolve.OpenFor(a.ttl))
	if err == nil && a.answered != nil {
		err = a.read(a.answered.reply)
	}
	if err == nil {
		err = a.confirm(ctx)
		if err == nil {
			return nil
		}
		a.giveBack(a.abort(a.channel()))
		return err
	}
	switch {
	case driver.Interrupted(err), errors.Is(err, errMalformed):
		a.giveBack(a.abort(a.channel())) // half of the hold may be there, even without an end of its lease
	case !a.unanswered.Settled():
		a.cleanUp(a.unanswered, a.abort(a.channel()))
	}
	return err
}

// send sends the attempt once: SET NX, and the script if that is refused, or the script alone.
func (a *keyAttempt) send(ctx context.Context) error {
	a.mark(a.sends.Last) // Resolve has just read the clock
	if a.beginsWithSetNX() {
		set, err := a.l.drv.SetNX(ctx, a.key, a.value, a.ttl)
		if err != nil {
			return err
		}
		if set {
			a.won = a.last
			return nil
		}
		a.mark(time.Now())
	}
	call := a.acquireCall()
	a.answered = &call
	return call.send(ctx)
}

// beginsWithSetNX reports whether the next command is SET NX. Resends need the script, which finds
// what an earlier send did, and so do waiters, which have a place in the queue.
func (a *keyAttempt) beginsWithSetNX() bool {
	return a.l.spec.SetNX && a.l.cfg.MinReplicas == 0 && !a.resumes() && !a.fenced() && a.sends.N == 1 &&
		(a.waiter.ID == "" || a.waiter.Free) && !a.l.cfg.Fair
}

// queues reports whether the attempt needs the queue of waiters.
func (a *keyAttempt) queues() bool {
	return a.l.spec.Queue && (a.waiter.waits || a.l.cfg.Fair) && !a.resumes()
}

// mark records that a command is sent now.
func (a *keyAttempt) mark(now time.Time) {
	a.last = now
	a.sent++
}

// readLate returns what a late reply to an attempt shows.
func readLate(v any) resolve.Verdict {
	switch v := v.(type) {
	case bool: // of SET NX
		if v {
			return resolve.Won
		}
		return resolve.Refused
	case driver.Reply:
		return verdictOf(v)
	}
	return resolve.Unclear
}

// verdictOf returns what a late reply of Acquire or Resume shows.
func verdictOf(reply driver.Reply) resolve.Verdict {
	switch status, err := reply.Int(0); {
	case err != nil:
	case status == replyYes:
		return resolve.Won
	case status == replyAlready, status == replyNo, status == replyLimit, status == replyCounter,
		status == replyForeign:
		return resolve.Refused
	}
	return resolve.Unclear
}

// read reads the reply of Acquire or Resume.
func (a *keyAttempt) read(reply driver.Reply) error {
	status, err := readStatus(reply, a.key, a.counter, replyYes, replyAlready, replyNo, replyLimit, replyCounter,
		replyForeign)
	switch {
	case err != nil:
		return err
	case status == replyLimit:
		return a.otherLimit(reply)
	case status == replyNo && a.resumes():
		return locker.ErrNotHeld
	case status == replyNo:
		return a.refused(reply)
	}
	a.won = a.last
	if a.fence, err = a.readOwnFence(reply); err != nil {
		return err
	}
	if a.l.spec.Convert != nil {
		if a.conversions, err = readConversions(reply); err != nil {
			return err
		}
	}
	if a.own = status == replyAlready; a.own {
		a.won = a.sends.First
		a.unanswered.Executed()
	}
	return nil
}

// refused returns the refusal in a reply. The caller learns that it did not wait, unless it asked
// for that.
func (a *keyAttempt) refused(reply driver.Reply) error {
	err := a.refusal(reply)
	if held, ok := err.(*locker.ContentionError); ok { //nolint:errorlint // refusal made it
		held.Fair = a.l.cfg.Fair
		held.Queue = a.l.spec.Queue && a.mode == locker.Exclusive && !a.waiter.Quorum
	}
	if a.noWait || !errors.Is(err, locker.ErrNotAcquired) {
		return err
	}
	return fmt.Errorf("%w; one attempt was made, middleware/retry waits", err)
}

// confirm returns an error unless the lease lasts and enough replicas acknowledged it.
func (a *keyAttempt) confirm(ctx context.Context) error {
	a.deadline = deadlineOf(a.won, a.ttl)
	if err := a.late(); err != nil || a.l.cfg.MinReplicas == 0 {
		return err
	}
	if err := a.acknowledged(ctx, a.answered, a.own); err != nil {
		return err
	}
	return a.late()
}

// late returns an error if the lease has ended.
func (a *keyAttempt) late() error {
	if time.Now().Before(a.deadline) {
		return nil
	}
	return fmt.Errorf("%w: the answer came %v after the send, past the lease; the attempt was undone",
		locker.ErrLost, time.Since(a.won).Round(time.Millisecond))
}

// describe adds the server to an error that may pass and says nothing about the lock, and the key
// to WRONGTYPE.
func (a *keyAttempt) describe(err error) error {
	switch {
	case driver.CodeOf(err) == "WRONGTYPE":
		return fmt.Errorf("key %.64q is of another type, as of another strategy's lock; it was left alone: %w", a.key,
			err)
	case a.sends.N == 0, !driver.Transient(err), errors.Is(err, locker.ErrNotAcquired),
		errors.Is(err, locker.ErrNotHeld),
		errors.Is(err, locker.ErrNotReplicated):
		return err
	}
	return locker.NewAttemptError(a.l.drv.Info().Address, time.Since(a.sends.First), err)
}

// undoIfClosing returns err. If the attempt acquired the lock while the driver is closing, it
// undoes that and returns ErrClosed: the lock could not be renewed or released.
func (a *keyAttempt) undoIfClosing(err error) error {
	if err != nil || a.sends.UntilClose.Err() == nil {
		return err
	}
	a.giveBack(a.abort(a.channel()))
	return driver.ErrClosed
}

// info describes the attempt, which ended with err, for a Trace.
func (a *keyAttempt) info(err error) locktrace.AttemptInfo {
	return locktrace.AttemptInfo{
		Source: a.l.Source(), Name: a.name, Mode: a.mode.String(), Sends: a.sent, Elapsed: time.Since(a.sends.First),
		Err: err,
	}
}

func (a *keyAttempt) grant() lease.Grant {
	return lease.Grant{
		Name: a.name, Owner: a.owner, Token: a.value, Mode: a.mode, TTL: a.ttl, Deadline: a.deadline, Fence: a.fence,
		MinHold: a.minHold,
	}
}

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
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// attempt is one acquire or resume, with all its sends. What it wins is its hold, which is apart: it outlives the rest.
type attempt struct {
	*hold
	sends resolve.Sends
	note  string
	mode  locker.Mode
	waits lease.Waiting
	once  bool // it does not wait

	sent     int       // commands sent
	last     time.Time // when the last command was sent
	scripted bool      // the answer is in reply
	reply    driver.Reply
	answered *command // by a script; nil where by SET NX

	won     time.Time // when the command was sent from which the lease counts; zero: not won
	own     bool      // an earlier send was found to have won
	fence   int64
	refused *locker.ContentionError // who holds it, where it is another
}

func (l *Locker) newAttempt(key string, req locker.Request) *attempt {
	owner, note, ttl := req.Owner, req.Note, req.TTL
	a := &attempt{hold: new(hold)}
	if g := req.Resume.Grant(); g.Token != "" {
		a.over = g.Token
		a.owner = g.Owner
		if l.layout.Parse != nil {
			oldOwner, oldNote := l.layout.Parse(g.Token)
			owner, note = cmp.Or(owner, oldOwner), cmp.Or(note, oldNote)
		}
		ttl = cmp.Or(ttl, g.TTL)
	}
	a.owner, a.note, a.mode, a.once = cmp.Or(owner, a.owner), note, req.Mode, req.NoWait
	a.layout, a.drv, a.name, a.key, a.value = l.layout, l.drv, req.Name, key, l.layout.Value(owner, note)
	a.ttl = l.cfg.ttl(ttl)
	a.timeout = l.cfg.attemptTimeout(a.ttl)
	a.replicas, a.within = l.cfg.MinReplicas, l.cfg.replicaTimeout(a.timeout)
	if req.Fenced || req.Resume.Fence() != 0 {
		a.fenceKey = counterKey(key)
	}
	a.sends.Timeout, a.sends.Limit, a.sends.Urgent = a.timeout, resolve.OpenFor(a.ttl), a.over != ""
	return a
}

// run sends the attempt until its outcome is known, and leaves nothing behind where it is not won.
func (a *attempt) run(ctx context.Context, req locker.Request) error {
	if a.layout.Shared {
		var waiting bool
		a.waits, waiting = lease.WaitingFrom(ctx)
		if !waiting {
			a.waits.Until, _ = ctx.Deadline()
		}
		a.once = a.once && !waiting // a quorum asks its nodes once, on behalf of somebody who waits
	}
	err := a.sends.Resolve(ctx, a)
	a.unanswered, a.openUntil = a.sends.Unanswered, a.last.Add(resolve.OpenFor(a.ttl))
	if driver.Interrupted(err) {
		a.giveBack(a.abort(a.channel())) // half of it may be written, a lease without an end even
		return err
	}
	if err == nil && a.scripted {
		if err = a.read(); err != nil && !inTheWay(err) {
			a.giveBack(a.abort(a.channel())) // a reply that we do not understand: it may have won
			return err
		}
	}
	if a.own {
		a.unanswered.Executed()
	}
	switch {
	case err == nil && a.refused != nil:
		err = a.refused
		if !req.NoWait {
			err = fmt.Errorf("%w; one attempt was made, middleware/retry waits", a.refused)
		}
	case err == nil && a.won.IsZero():
		err = locker.ErrNotHeld // a resume of what is gone
	case err == nil:
		a.deadline = deadline(a.won, a.ttl)
		if err = a.late(); err == nil {
			err = cmp.Or(a.acknowledged(ctx, a.answered, a.own), a.late())
		}
		if err != nil {
			a.giveBack(a.abort(a.channel()))
		}
		return err
	}
	if !a.unanswered.Settled() {
		a.cleanUp(a.unanswered, a.abort(a.channel()))
	}
	return err
}

// failed adds the server to an error that may pass and says nothing about the lock, and the key to
// WRONGTYPE.
func (a *attempt) failed(err error) error {
	switch {
	case driver.CodeOf(err) == "WRONGTYPE":
		return fmt.Errorf("key %.64q is of another type, as of another strategy's lock; it was left alone: %w", a.key, err)
	case a.sends.N == 0, !driver.Transient(err), errors.Is(err, locker.ErrNotAcquired), errors.Is(err, locker.ErrNotHeld),
		errors.Is(err, locker.ErrNotReplicated):
		return err
	}
	return locker.NewAttemptError(a.drv.Info().Address, time.Since(a.sends.First), err)
}

// undoIfClosing returns err. If an acquire succeeded while the driver is closing it undoes it and
// returns ErrClosed: the lock could not be renewed or released.
func (a *attempt) undoIfClosing(err error) error {
	if err != nil || a.sends.Drainer == nil || !a.sends.Drainer.Closing() {
		return err
	}
	a.giveBack(a.abort(a.channel()))
	return driver.ErrClosed
}

// Send implements resolve.Command.
func (a *attempt) Send(ctx context.Context) error {
	if a.layout.SetNX && a.replicas == 0 && a.over == "" && !a.fenced() && a.sends.N == 1 {
		a.mark()
		set, err := a.drv.SetNX(ctx, a.key, a.value, a.ttl)
		if err != nil {
			return err
		}
		if set {
			a.won = a.last
			return nil
		}
	}
	a.mark()
	a.scripted = true
	cmd := a.replicated(a.layout.Acquire, a.fenced(), a.value, millis(a.ttl), a.kept(a.ttl))
	if a.over != "" {
		cmd.script, cmd.args = a.layout.Resume, append(cmd.args, a.over)
	}
	switch {
	case a.layout.Shared:
		waited := "-1"
		switch {
		case a.once:
		case a.waits.ID == "":
			waited = "0"
		default:
			waited = millis(time.Since(a.waits.Since))
		}
		cmd.args = append(append(cmd.args, a.owner, a.note, a.mode.String(), waited, a.waits.ID, a.patience()), a.layout.Extra...)
	case a.layout.SendHolder:
		cmd.args = append(cmd.args, a.owner, a.note)
	}
	err := cmd.Send(ctx)
	a.reply, a.answered = cmd.reply, cmd
	return err
}

// ReadLate implements resolve.LateReader. It touches nothing of the attempt, which may be over.
func (a *attempt) ReadLate(v any) resolve.Verdict {
	switch v := v.(type) {
	case bool: // of SET NX
		if v {
			return resolve.Won
		}
		return resolve.Refused
	case driver.Reply:
		switch status, err := v.Int(0); {
		case err != nil:
		case status == replyYes:
			return resolve.Won
		case status == replyAlready, status == replyNo, status == replyCounter, status == replyForeign:
			return resolve.Refused
		}
	}
	return resolve.Unclear
}

// late is the error of an answer that came too late for the lease; nil where it came in time.
func (a *attempt) late() error {
	if time.Now().Before(a.deadline) {
		return nil
	}
	return fmt.Errorf("%w: the answer came %v after the send, past the lease; it was given back",
		locker.ErrLost, time.Since(a.won).Round(time.Millisecond))
}

// patience is for how many ms more the caller may wait, at least 1; "" where that has no end.
func (a *attempt) patience() string {
	if a.waits.Until.IsZero() {
		return ""
	}
	return millis(max(time.Until(a.waits.Until), time.Millisecond))
}

func (a *attempt) mark() {
	a.last = time.Now()
	a.sent++
}

// read takes in the reply of acquire or resume.
func (a *attempt) read() error {
	status, err := a.reply.Int(0)
	if err != nil {
		return Malformed(err)
	}
	switch status {
	case replyYes, replyAlready:
		a.own = status == replyAlready
		a.won = a.last
		if a.own {
			a.won = a.sends.First
		}
		return a.readGrant()
	case replyNo:
		if a.over != "" {
			return nil
		}
		return a.readHolder(a.reply)
	case replyCounter:
		return a.counterError(a.reply)
	case replyForeign:
		return Foreign(a.key, a.reply)
	default:
		return Malformed(fmt.Errorf("status %d", status))
	}
}

func (a *attempt) readGrant() (err error) {
	if a.fence, err = a.readToken(a.reply); err != nil || a.layout.Convert == nil {
		return err
	}
	if a.conversions, err = a.reply.Int(2); err == nil && (a.conversions < 0 || a.conversions > maxConversions) {
		err = fmt.Errorf("%d conversions", a.conversions)
	}
	if err != nil {
		return Malformed(err)
	}
	return nil
}

// maxConversions is the highest number that Lua counts exactly.
const maxConversions = 1 << 53

// readToken reads the fencing token behind the status, of what makes a hold: there is one if it is fenced, and only then.
func (h *hold) readToken(reply driver.Reply) (int64, error) {
	fence, err := readFence(reply)
	if err == nil && (fence > 0) != h.fenced() {
		return 0, Malformed(fmt.Errorf("a fencing token of %d, fenced: %v", fence, h.fenced()))
	}
	return fence, err
}

// readFence reads the fencing token behind the status.
func readFence(reply driver.Reply) (int64, error) {
	text, err := reply.Text(1)
	if err != nil {
		return 0, Malformed(err)
	}
	fence, err := parseFence(text)
	if err != nil {
		return 0, Malformed(err)
	}
	return fence, nil
}

func (a *attempt) readHolder(reply driver.Reply) (err error) {
	a.refused, err = a.contention(reply)
	return err
}

func (a *attempt) grant() lease.Grant {
	return lease.Grant{
		Name: a.name, Owner: a.owner, Token: a.value, Mode: a.mode, TTL: a.ttl, Deadline: a.deadline, Fence: a.fence,
	}
}

// deadline is until when a lease is ours that was asked for at sent: by the local clock, less the drift.
func deadline(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - ttl/100 - 2*time.Millisecond)
}

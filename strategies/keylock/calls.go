package keylock

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// scriptCall is a call of a script, with all its sends.
type scriptCall struct {
	resolve.Sends
	drv    driver.Driver
	script *driver.Script
	keys   []string
	args   []string
	reply  driver.Reply
	queue  bool // the last key is the queue's; the script can do without

	keepUntil time.Time // of a release: see lease.Op.KeepUntil

	replicas int           // how many must acknowledge it; 0: none
	within   time.Duration // the time for it; less if ctx ends sooner
	acked    int           // how many did, in the last send
}

// send sends the call once.
func (c *scriptCall) send(ctx context.Context) error {
	err := c.sendOnce(ctx)
	if c.queue && driver.CodeOf(err) == "TRYAGAIN" { // the keys of a migrating slot are on two nodes
		c.keys, c.queue = c.keys[:len(c.keys)-1], false
		err = c.sendOnce(ctx)
	}
	return err
}

func (c *scriptCall) sendOnce(ctx context.Context) (err error) {
	if c.replicas > 0 {
		return c.sendAcked(ctx)
	}
	c.reply, err = c.drv.Eval(ctx, c.script, c.keys, c.currentArgs())
	return err
}

// currentArgs returns the arguments to send now. A release with MinHold adds the rest of it,
// rounded up: a resend has less.
func (c *scriptCall) currentArgs() []string {
	if c.keepUntil.IsZero() {
		return c.args
	}
	left := time.Until(c.keepUntil)
	if left <= 0 {
		return c.args
	}
	// an earlier send may still use the array
	return append(slices.Clip(c.args), millis(left+time.Millisecond-1))
}

// call prepares a call with the keys of the hold.
func (h *keyHold) call(script *driver.Script, args ...string) scriptCall {
	c := h.lockCall(script, args...)
	if h.fenced() {
		c.keys = c.keys[:2]
	}
	return c
}

// lockCall prepares a call with the key of the lock alone.
func (h *keyHold) lockCall(script *driver.Script, args ...string) scriptCall {
	words := make([]string, 3+len(args)) // room for the counter and the queue
	words[0], words[1] = h.key, h.counter
	copy(words[3:], args)
	return scriptCall{
		Sends: resolve.Sends{Timeout: h.timeout, Urgent: true}, drv: h.l.drv, script: script,
		keys: words[:1:3], args: words[3:],
	}
}

// queued adds the key of the queue of waiters.
func (c *scriptCall) queued() {
	c.keys = append(c.keys, queueKey(c.keys[0]))
	c.queue = true
}

// Each of the following functions builds the arguments of one script, in the order of Spec.

// acquireCall prepares the call of Acquire, or of Resume if the attempt takes over a hold.
func (a *keyAttempt) acquireCall() scriptCall {
	spec, script := a.l.spec, a.l.spec.Acquire
	var room [12]string
	args := append(room[:0], a.acquired, millis(a.ttl), a.counterTTL(a.ttl))
	if a.resumes() {
		script, args = spec.Resume, append(args, a.replaced)
	}
	if spec.ParseValue == nil {
		args = append(args, a.owner, a.req.Note)
	}
	if spec.Shared {
		args = append(args, a.req.Mode.String())
	}
	if spec.Shared || spec.Queue {
		args = append(args, a.waiter.waited(), a.waiter.patience())
	}
	if spec.Queue {
		channel, place := a.channel(), a.waiter.place(a.req.Mode, spec.Shared)
		delivery := a.waiter.delivery(a.l.drv, channel, place)
		args = append(args, place, strconv.Itoa(int(delivery)), channel, a.waiter.next(a.l.cfg.Fair))
	}
	c := a.replicated(a.call(script, append(args, spec.ExtraArgs...)...))
	if spec.Queue && (a.waiter.waits || a.l.cfg.Fair) && !a.resumes() {
		c.queued()
	}
	return c
}

func (h *keyHold) renewCall(ttl time.Duration) scriptCall {
	return h.replicated(h.call(h.l.spec.Renew, h.Token(), millis(ttl), h.counterTTL(ttl)))
}

func (h *keyHold) convertCall(mode locker.Mode) scriptCall {
	number := strconv.FormatInt(h.conversions.Add(1), 10)
	c := h.call(h.l.spec.Convert, h.Token(), mode.String(), number, h.channel(), h.counterTTL(h.ttl))
	if h.l.spec.Queue {
		c.queued()
	}
	if mode == locker.Exclusive {
		return h.replicated(c)
	}
	return c
}

func (h *keyHold) raiseFenceCall(fence int64) scriptCall {
	return h.call(h.l.spec.RaiseFence, h.Token(), strconv.FormatInt(fence, 10), h.counterTTL(h.ttl))
}

// noteCall prepares the call of Resume that changes the note. It is no resume: it has no fence counter,
// and the lease lasts no longer than the Deadline.
func (h *keyHold) noteCall(value string, c *change) scriptCall {
	left := max(time.Until(h.until()), time.Millisecond)
	args := []string{c.value, millis(left), "0", value}
	if h.l.spec.ParseValue == nil {
		args = append(args, h.owner, c.note, "")
	}
	return h.replicated(h.lockCall(h.l.spec.Resume, args...))
}

// endCall prepares the call of Release, or of UndoResume, for the hold with that value. A release
// wakes waiters, unless it is an OpUndo. It leaves out the arguments of the queue if all are empty:
// with them an acquire and a release cost the server a tenth more.
func (h *keyHold) endCall(value string, op lease.Op) scriptCall {
	spec, fair, channel := h.l.spec, "", h.channel()
	if op.Kind == lease.OpUndo {
		if h.resumes() {
			return h.lockCall(spec.UndoResume, value, h.replaced)
		}
		channel = ""
	}
	if h.l.cfg.Fair {
		fair = "1"
	}
	next := ""
	switch {
	case op.ForWaiter:
		next = "keep"
	case op.WaiterLeft:
		next = "leave"
	}
	args := append(make([]string, 0, 5), value, channel)
	if spec.Queue && (op.Waiter != "" || fair != "" || next != "" || !op.KeepUntil.IsZero()) {
		args = append(args, op.Waiter, fair, next)
	}
	if spec.Siblings != nil {
		args = append(args, strconv.Itoa(int(h.l.drv.Delivery(channel))))
	}
	c := h.lockCall(spec.Release, args...)
	if spec.Queue {
		c.queued()
	}
	c.keepUntil = op.KeepUntil
	return c
}

// counterTTL returns the TTL of the fence counter of a lock with that ttl, in ms; "0" if there is
// none.
func (h *keyHold) counterTTL(ttl time.Duration) string {
	if !h.fenced() {
		return "0"
	}
	return millis(ttl + counterLife)
}

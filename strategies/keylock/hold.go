package keylock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// hold is one hold at the server; it is the lease.Lease.
type hold struct {
	layout                  *Layout
	drv                     driver.Driver
	name, key, value, owner string
	fenceKey                string // "": not fenced
	over                    string // the value that a resume replaced; "" where the hold was acquired
	ttl, timeout            time.Duration
	replicas                int                 // must acknowledge what the hold rests on
	within                  time.Duration       // that they have for it
	unanswered              *resolve.Unanswered // sends of the acquire that may still be executed
	openUntil               time.Time           // until when they are reckoned with

	mu          sync.Mutex
	deadline    time.Time // the latest that an answer gave
	conversions int64     // the number of the last conversion
}

// Source implements lease.Sourced.
func (h *hold) Source() locktrace.Source {
	info := h.drv.Info()
	return locktrace.Source{Strategy: h.layout.Strategy, Client: info.Client, Address: info.Address}
}

// Do implements lease.Lease.
func (h *hold) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	switch op.Kind {
	case lease.OpRenew:
		return h.renew(ctx, cmp.Or(op.TTL.Truncate(time.Millisecond), h.ttl))
	case lease.OpRelease:
		return lease.Term{}, h.end(ctx, h.release(h.channel()))
	case lease.OpGiveBack:
		return lease.Term{}, h.end(ctx, h.abort(nobody))
	case lease.OpRaiseFence:
		return h.raiseFence(ctx, op.Fence)
	case lease.OpConvert:
		if h.layout.Convert != nil {
			return h.convert(ctx, op.Mode)
		}
	}
	return lease.Term{}, fmt.Errorf("%v on a lock of %s: %w", op.Kind, h.layout.Strategy, errors.ErrUnsupported)
}

// nobody is the channel of a release that is published nowhere.
const nobody = ""

// channel is where releases are published.
func (h *hold) channel() string {
	wake, _ := driver.Sibling(h.key, driver.WakeSuffix)
	return wake
}

func (h *hold) until() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

func (h *hold) extend(deadline time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if deadline.After(h.deadline) {
		h.deadline = deadline
	}
}

// command is a script call, with all its sends. What it needs is inside it: one allocation.
type command struct {
	resolve.Sends
	drv    driver.Driver
	script *driver.Script
	keys   []string
	args   []string
	reply  driver.Reply

	replicas int           // that are to acknowledge it; 0: none is asked
	within   time.Duration // that they have; less where ctx ends sooner
	acked    int           // that did, in the last send

	key [2]string
	arg [5]string
}

// Send implements resolve.Command.
func (c *command) Send(ctx context.Context) (err error) {
	if c.replicas > 0 {
		return c.sendAcked(ctx)
	}
	c.reply, err = c.drv.Eval(ctx, c.script, c.keys, c.args)
	return err
}

// command prepares a call on the lock, and on the fence counter where fenced.
func (h *hold) command(script *driver.Script, fenced bool, args ...string) *command {
	c := &command{Sends: resolve.Sends{Timeout: h.timeout, Urgent: true}, drv: h.drv, script: script, key: [2]string{h.key, h.fenceKey}}
	c.keys = c.key[:1]
	if fenced {
		c.keys = c.key[:2]
	}
	c.args = append(c.arg[:0], args...)
	return c
}

// kept is how long the fence counter is kept whose lock may last for ttl yet, in ms. Without one nobody asks.
func (h *hold) kept(ttl time.Duration) string {
	if !h.fenced() {
		return "0"
	}
	return millis(counterLife(ttl))
}

func (h *hold) fenced() bool { return h.fenceKey != "" }

// gone makes of an error that shows that the key is not ours any more the error of a lost lock. Then the outcome is known,
// whatever became of earlier sends.
func gone(err error) error {
	if found, ok := errors.AsType[*driver.ServerError](err); ok && found.Code() == "WRONGTYPE" {
		return fmt.Errorf("%w: %w", locker.ErrLost, found)
	}
	return err
}

// renew extends the lease. It is repeated until it is answered, while ctx and the lease last.
func (h *hold) renew(ctx context.Context, ttl time.Duration) (lease.Term, error) {
	cmd := h.replicated(h.layout.Renew, h.fenced(), h.value, millis(ttl), h.kept(ttl))
	cmd.Limit = max(time.Until(h.until()), time.Nanosecond)
	if err := cmd.Resolve(ctx, cmd); err != nil {
		return lease.Term{}, gone(err)
	}
	if extended, err := answer(cmd.reply); err == nil && extended && cmd.acked < cmd.replicas {
		return lease.Term{}, cmd.shortfall() // a failover may bring the old lease back, so the old Deadline stays
	}
	return h.renewed(cmd.reply, cmd.Last, ttl)
}

// renewed takes in the answer to a renewal.
func (h *hold) renewed(reply driver.Reply, sent time.Time, ttl time.Duration) (lease.Term, error) {
	extended, err := answer(reply)
	switch {
	case err != nil:
		return lease.Term{}, err
	case !extended:
		return lease.Term{}, locker.ErrLost
	}
	h.extend(deadline(sent, ttl))
	return lease.Term{Deadline: h.until()}, nil
}

func (h *hold) raiseFence(ctx context.Context, fence int64) (lease.Term, error) {
	if !h.fenced() {
		return lease.Term{}, fmt.Errorf("raise the fence of a lock that is not fenced: %w", errors.ErrUnsupported)
	}
	if fence < 1 || fence > maxFence {
		return lease.Term{}, driver.Invalid("Op.Fence", strconv.FormatInt(fence, 10), "a token that a counter can hold: 1 to 2^53-2")
	}
	cmd := h.command(h.layout.RaiseFence, true, h.value, strconv.FormatInt(fence, 10), h.kept(h.ttl))
	cmd.Limit = max(time.Until(h.until()), time.Nanosecond)
	if err := cmd.Resolve(ctx, cmd); err != nil {
		return lease.Term{}, gone(err)
	}
	status, err := cmd.reply.Int(0)
	if err != nil {
		return lease.Term{}, Malformed(err)
	}
	switch status {
	case replyYes:
		now, err := readFence(cmd.reply)
		if err == nil && now < fence {
			err = Malformed(fmt.Errorf("a fencing token of %d, raised to %d", now, fence))
		}
		if err != nil {
			return lease.Term{}, err
		}
		return lease.Term{Deadline: h.until(), Fence: now}, nil
	case replyNo:
		return lease.Term{}, locker.ErrLost
	case replyCounter:
		return lease.Term{}, h.counterInTheWay(cmd)
	case replyForeign:
		return lease.Term{}, h.foreignBeside(cmd)
	default:
		return lease.Term{}, Malformed(fmt.Errorf("status %d", status))
	}
}

// counterError is the error of the reply {-1, text}.
func (h *hold) counterError(reply driver.Reply) error {
	found, err := reply.Text(1)
	if err != nil {
		return Malformed(err)
	}
	return driver.Permanent(fmt.Errorf("%w: key %q holds %s; it was left alone", errCounter, h.fenceKey, found))
}

// counterInTheWay is the counterError of a command that changes what is held: an earlier send of it may yet be executed, once
// the counter is one again.
func (h *hold) counterInTheWay(cmd *command) error {
	err := h.counterError(cmd.reply)
	if cmd.Open > 0 {
		err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
	}
	return err
}

// foreignBeside is the error of a command that changes what is held, and that found something beside the hold that is not ours.
func (h *hold) foreignBeside(cmd *command) error {
	err := Foreign(h.key, cmd.reply)
	if cmd.Open > 0 {
		err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
	}
	return err
}

// contention says who holds by a script's refusal.
func (h *hold) contention(reply driver.Reply) (*locker.ContentionError, error) {
	holder, err := h.layout.Holder(reply)
	if err != nil {
		return nil, Malformed(err)
	}
	held := &locker.ContentionError{Name: h.name, Owner: holder.Owner, Note: holder.Note, Channel: driver.NewChannel(h.drv, h.channel()), Ordered: h.layout.Shared}
	if holder.Left >= 0 {
		held.Left = Millis(max(holder.Left, 1))
	}
	if holder.Again >= 0 {
		held.RetryAfter = Millis(max(holder.Again, 1))
	}
	return held, nil
}

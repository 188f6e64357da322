package keylock

import (
	"context"
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// QueueLua defines the functions of a queue of waiters at the server, for a Spec with Queue:
//
//   - enqueue(queue, id, delivery, waited, patience, left), for an attempt that was refused;
//   - remove_waiter(queue, id), for one that acquires;
//   - kept_for(queue, channel, id, fair), which says whether a free lock is kept for another waiter;
//   - wake(queue, channel, own), for a release, and wake_all and wake_first, of which it is made.
//
// The delivery of a waiter is a driver.Delivery, by which it is woken.
//
//go:embed lua/queue.lua
var QueueLua string

// reserved is how the value begins that single stores for a waiter that a lock is kept for. Its
// scripts also reply with it alone, if the key is free.
const reserved = "~"

// placeOfAll is the place of the waiters that a release wakes together.
const placeOfAll = "all"

// waiter is what the scripts learn of an attempt that waits. The zero waiter does not wait.
type waiter struct {
	lease.Waiting
	waits bool // for longer than this attempt
}

// waiterOf returns who makes an attempt. A quorum asks its nodes without waiting, on behalf of a
// caller that may wait.
func waiterOf(ctx context.Context, req locker.Request) (w waiter) {
	w.Waiting, w.waits = lease.WaitingFrom(ctx)
	if !w.waits {
		w.Until, _ = ctx.Deadline()
		w.waits = !req.NoWait
	}
	return w
}

// waited returns for how long the caller has waited, in ms; "-1" if it does not wait.
func (w waiter) waited() string {
	switch {
	case !w.waits:
		return "-1"
	case w.Since.IsZero():
		return "0"
	default:
		return strconv.FormatFloat(float64(time.Since(w.Since).Microseconds())/1000, 'f', -1, 64)
	}
}

// patience returns for how much longer the caller may wait, in ms, at least "1"; "" without end.
func (w waiter) patience() string {
	if w.Until.IsZero() {
		return ""
	}
	return millis(max(time.Until(w.Until), time.Millisecond))
}

// place returns the waiter's place in the queue; "" if it does not wait. Readers are let in
// together, and the nodes of a quorum have no order in common.
func (w waiter) place(mode locker.Mode) string {
	switch {
	case !w.waits:
		return ""
	case w.ID == "" || w.Quorum || mode == locker.Shared:
		return placeOfAll
	default:
		return w.ID
	}
}

// delivery returns how a waiter is woken through drv on a base channel.
func (w waiter) delivery(drv driver.Driver, channel, place string) driver.Delivery {
	d, ok := drv.(driver.Deliverer)
	if !ok {
		return driver.DeliveryPlain
	}
	if place != placeOfAll {
		channel = driver.NewChannel(drv, channel).For(place).Name()
	}
	delivery := d.Delivery(channel)
	if !w.Subscribed && delivery == driver.DeliveryCounted {
		return driver.DeliveryPlain // that nobody listens does not mean that it is gone
	}
	return delivery
}

// queueKey returns the key of the queue of a lock's key.
func queueKey(key string) string {
	waiters, _ := driver.WaitersKey(key)
	return waiters
}

// foreign reports whether a value of a lock is that of another library.
func (s *Spec) foreign(value string) bool {
	id, kept := strings.CutPrefix(value, reserved)
	switch {
	case !s.Queue || s.ParseValue == nil:
		return false
	case len(id) >= lease.TokenLen:
		return !lease.IsToken(id[:lease.TokenLen])
	default:
		return !kept || id != ""
	}
}

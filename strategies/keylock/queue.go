package keylock

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// reservedPrefix begins the value with which single reserves a lock for a waiter. A script replies
// with the prefix alone if the lock is kept for a waiter and the key is free.
//
// It also begins the value after a release of single before the end of MinHold: the prefix, and the
// value of the hold.
const reservedPrefix = "~"

// Waiters without places of their own share the place of their group: a release wakes all of them.
// If the strategy has a shared mode, writers have two groups.
const (
	placeOfAll       = "all"
	placeOfWriters   = "writers"   // at a node of a quorum
	placeOfNewcomers = "newcomers" // before their first refusal
)

// waiter describes the caller of an attempt to the scripts. The zero waiter does not wait.
type waiter struct {
	lease.Waiting
	waits bool // beyond this attempt
}

// waiterOf returns the waiter of an attempt. ctx says so if there is one, even with NoWait: a
// quorum sets NoWait at its nodes for a waiting caller.
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
		return millisSince(w.Since)
	}
}

// next returns for how long the next waiter of the process has waited, in ms; "-1" if there is
// none, "" if the order is not strict.
func (w waiter) next(fair bool) string {
	switch {
	case !fair:
		return ""
	case w.Next.IsZero():
		return "-1"
	default:
		return millisSince(w.Next)
	}
}

func millisSince(t time.Time) string {
	return strconv.FormatFloat(float64(time.Since(t).Microseconds())/1000, 'f', -1, 64)
}

// patience returns for how much longer the caller may wait, in ms, at least "1"; "" without end.
func (w waiter) patience() string {
	if w.Until.IsZero() {
		return ""
	}
	return millis(max(time.Until(w.Until), time.Millisecond))
}

// place returns the name of the waiter's place in the queue: its ID, or "" if it does not wait.
// Readers are let in together, and the nodes of a quorum have no common order, so they have no
// places of their own. modes: the strategy has a shared mode.
func (w waiter) place(mode locker.Mode, modes bool) string {
	switch {
	case !w.waits:
		return ""
	case w.ID != "" && !w.Quorum && mode == locker.Exclusive:
		return w.ID
	case !modes || mode == locker.Shared:
		return placeOfAll
	case w.Quorum:
		return placeOfWriters
	default:
		return placeOfNewcomers
	}
}

// delivery returns how the waiter at place is woken through drv. channel is the lock's channel, for
// all waiters.
func (w waiter) delivery(drv driver.Driver, channel, place string) driver.Delivery {
	if place == w.ID {
		channel = driver.NewChannel(drv, channel).For(place).Name()
	}
	delivery := drv.Delivery(channel)
	if w.ID != "" && !w.Subscribed && delivery == driver.DeliveryCounted {
		return driver.DeliveryPlain // with no receiver the waiter may still be there
	}
	return delivery
}

// queueKey returns the key of the queue of a lock's key.
func queueKey(key string) string {
	waiters, _ := sibling.Waiters(key)
	return waiters
}

// kept reports whether a release left a stored value, because MinHold had not passed.
func (s *Spec) kept(value string) bool {
	if s.ParseValue == nil {
		return false
	}
	value, ok := strings.CutPrefix(value, reservedPrefix)
	return ok && s.MinHold && len(value) >= lease.TokenLen && lease.IsToken(value[:lease.TokenLen]) &&
		value[lease.TokenLen:] != reservedPrefix
}

// foreign reports whether a stored value was written by another library. A value of ours is a
// token, and what a strategy or reservedPrefix sets apart from it: 32 hexadecimal digits are not.
func (s *Spec) foreign(value string) bool {
	id, kept := strings.CutPrefix(value, reservedPrefix)
	switch {
	case !s.Queue && s.Siblings == nil || s.ParseValue == nil:
		return false
	case len(id) >= lease.TokenLen:
		token, rest := id[:lease.TokenLen], id[lease.TokenLen:]
		return !lease.IsToken(token) || rest != "" && strings.IndexByte("|: "+reservedPrefix, rest[0]) < 0
	default:
		return !kept || id != ""
	}
}

package adapter

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// blame takes an error reply that ended the connection for the answer to the first unanswered
// SUBSCRIBE. If that was a probe, or the refusal is transient and the channel was confirmed before,
// the next connection asks again. The mutex is held.
func (h *Hub) blame(err error) {
	i := slices.IndexFunc(h.asked, func(o order) bool { return !o.stop })
	if driver.CodeOf(err) == "" || i < 0 {
		return
	}
	channel := h.asked[i].channel
	t := h.topics[channel]
	switch {
	case t == nil || h.confirmed(t) || t.isSettled && driver.Transient(err):
	case h.owner != nil || !t.isSettled:
		h.fail(only(channel), err)
	default:
		h.remember(channel, err)
		t.wakeAll()
	}
}

// confirmed reports whether the current connection has confirmed t: another SUBSCRIBE is a probe.
// The mutex is held.
func (h *Hub) confirmed(t *topic) bool { return t != nil && t.on == h.opened }

// handle processes an event. It returns an error if the connection must be replaced. The mutex is
// held.
func (h *Hub) handle(ev Event) error {
	switch ev.Kind {
	case "subscribe", "ssubscribe":
		return h.answered(order{channel: ev.Channel}, ev.Err)
	case "unsubscribe", "sunsubscribe":
		if o := (order{channel: ev.Channel, stop: true}); h.owner != nil && ev.Err == nil &&
			!slices.Contains(h.asked, o) {
			h.ended(ev.Channel)
			return nil
		}
		return h.answered(order{channel: ev.Channel, stop: true}, ev.Err)
	case "message", "smessage":
		if t := h.topics[ev.Channel]; t != nil {
			t.wakeAll()
			if h.owner != nil {
				h.owner.woken(h, ev.Channel)
			}
		}
	case "":
		if ev.Err == nil || len(h.asked) == 0 {
			return ev.Err
		}
		return h.answered(h.asked[0], ev.Err)
	}
	return nil
}

// ended ends the subscription to channel, whose slot the node has given away. An SSUBSCRIBE without
// an answer decides instead. The mutex is held.
func (h *Hub) ended(channel string) {
	if h.pending[channel] == 0 {
		h.fail(only(channel), errSlotMoved)
	} else if t := h.topics[channel]; t != nil {
		t.on = 0 // if a probe is confirmed now, it subscribes anew
	}
}

// answered processes the answer to o; err is the server's refusal, or nil. The mutex is held.
func (h *Hub) answered(o order, err error) error {
	h.strike(o)
	if o.stop {
		if err == nil || h.owner != nil && driver.CodeOf(err) == "MOVED" { // then nothing is left
			return nil
		}
		if h.leftover++; h.leftover < maxLeftover {
			return nil // messages on the channel are ignored
		}
		return err
	}
	t, expected := h.topics[o.channel], h.pending[o.channel] > 0
	h.pending[o.channel]--
	waiting := h.pending[o.channel] > 0
	if !waiting {
		delete(h.pending, o.channel)
	}
	h.await()
	h.proven = h.proven || err == nil
	if waiting { // the answer was for an earlier SUBSCRIBE, cancelled since: it proves nothing
		return nil
	}
	// Any answer to a probe proves the connection. A refusal leaves the subscription as it was, unless
	// the slot has moved.
	if expected && h.confirmed(t) && driver.CodeOf(err) != "MOVED" {
		return nil
	}
	if t != nil && err == nil {
		t.on = h.opened
	}
	if h.owner != nil {
		if err != nil {
			h.fail(only(o.channel), err)
		} else if t != nil {
			t.settle()
			h.owner.confirmed(h, o.channel)
		}
		return nil
	}
	final := err != nil && !driver.Transient(err)
	if final {
		h.remember(o.channel, err)
	}
	switch {
	case t == nil:
	case err == nil:
		t.settle()
		t.wakeAll()
	case !t.isSettled:
		h.fail(only(o.channel), err)
	case final: // a probe asks again after refusedFor
		t.wakeAll()
	default: // another connection subscribes again
		return err
	}
	return nil
}

// strike removes o from the unanswered commands, and UNSUBSCRIBEs before it: the feed did not
// report their answers. The mutex is held.
func (h *Hub) strike(o order) {
	i := slices.Index(h.asked, o)
	if i < 0 {
		return
	}
	for ; i > 0 && h.asked[0].stop; i-- {
		h.asked = h.asked[1:]
	}
	if i == 0 {
		h.asked = h.asked[1:]
		return
	}
	h.asked = slices.Delete(h.asked, i, i+1)
}

// refusal returns the server's refusal of channel, or nil if SUBSCRIBE may be sent. The mutex is
// held.
func (h *Hub) refusal(channel string) error {
	if r, known := h.refused[channel]; known && time.Now().Before(r.until) {
		return r.err
	}
	return nil
}

// remember keeps a refusal for refusedFor. The mutex is held.
func (h *Hub) remember(channel string, err error) {
	now := time.Now()
	if now.After(h.sweep) {
		maps.DeleteFunc(h.refused, func(_ string, r refusedChannel) bool { return now.After(r.until) })
		h.sweep = now.Add(refusedFor)
	}
	h.refused[channel] = refusedChannel{err: err, until: now.Add(refusedFor)}
}

// only returns a match for fail.
func only(channel string) func(string, *topic) bool {
	return func(c string, _ *topic) bool { return c == channel }
}

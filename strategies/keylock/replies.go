package keylock

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// The status of a script's reply. See Spec.
const (
	replyForeign = -2
	replyCounter = -1
	replyNo      = 0
	replyYes     = 1
	replyAlready = 2
	replyRefused = 3
	replyLate    = 4
	replyLimit   = 5

	// Of a release.
	replyAlone = 2
	replyWoken = 3
)

var (
	errMalformed = errors.New("unexpected reply of a script")
	errForeign   = errors.New("key is of another type")
	errCounter   = errors.New("fence counter is not a number")
)

// malformed returns the error of a reply of an unknown form. It matches driver.ErrPermanent.
func malformed(err error) error {
	return driver.Permanent(fmt.Errorf("%w: %w", errMalformed, err))
}

// wroteNothing reports whether a script found data of others, and so wrote nothing.
func wroteNothing(err error) bool {
	return errors.Is(err, errForeign) || errors.Is(err, errCounter)
}

// readStatus returns the status of a reply. Errors: a status outside want; foreign data at key or
// counter. They match driver.ErrPermanent.
func readStatus(reply driver.Reply, key, counter string, want ...int64) (int64, error) {
	status, err := reply.Int(0)
	switch {
	case err != nil:
		return 0, malformed(err)
	case !slices.Contains(want, status):
		return 0, malformed(fmt.Errorf("status %d", status))
	case status >= 0:
		return status, nil
	}
	found, err := reply.Text(1)
	switch {
	case err != nil:
		err = malformed(err)
	case status == replyCounter:
		err = driver.Permanent(fmt.Errorf("%w: key %q holds %s; it was left alone", errCounter, counter, found))
	default:
		err = driver.Permanent(fmt.Errorf("%w: %.64q holds %s; it was left alone", errForeign, key, found))
	}
	return 0, err
}

// readFence reads the fencing token at an index of the reply.
func readFence(reply driver.Reply, at int) (int64, error) {
	text, err := reply.Text(at)
	if err != nil {
		return 0, malformed(err)
	}
	fence, err := strconv.ParseInt(text, 10, 64)
	if err != nil || fence < 0 {
		return 0, malformed(fmt.Errorf("script returned %q for a fencing token", text))
	}
	return fence, nil
}

// maxConversions is the highest exact number in Lua.
const maxConversions = 1 << 53

// readConversions reads the number of the hold's last conversion, behind the fence.
func readConversions(reply driver.Reply) (int64, error) {
	n, err := reply.Int(2)
	if err == nil && (n < 0 || n > maxConversions) {
		err = fmt.Errorf("%d conversions", n)
	}
	if err != nil {
		return 0, malformed(err)
	}
	return n, nil
}

// holderReply is a holder in a reply.
type holderReply struct {
	owner, note string
	left        int64 // ms; negative: unknown
	foreign     bool
	released    bool // the holder has released, but its MinHold lasts
	next        int  // the index of the item behind the holder
}

// readHolder reads the holder behind the status.
func (s *Spec) readHolder(reply driver.Reply) (h holderReply, err error) {
	var errNote error
	if h.owner, err = reply.Text(1); s.ParseValue != nil {
		h.foreign, h.released = s.foreign(h.owner), s.kept(h.owner)
		h.owner, h.note = s.ParseValue(h.owner)
		h.next = 2
	} else {
		h.note, errNote = reply.Text(2)
		h.next = 3
	}
	left, errLeft := reply.Int(h.next)
	h.left = left
	h.next++
	if err := errors.Join(err, errNote, errLeft); err != nil {
		return holderReply{}, malformed(err)
	}
	return h, nil
}

// readState reads the reply of Inspect.
func (s *Spec) readState(reply driver.Reply, key string) (locker.State, error) {
	status, err := readStatus(reply, key, "", replyYes, replyNo, replyForeign)
	if err != nil {
		return locker.State{}, err
	}
	waiters, err := s.readWaiters(reply)
	if err != nil {
		return locker.State{}, err
	}
	if status == replyNo {
		return locker.State{Permits: s.Permits, Free: s.Permits, Waiters: waiters}, nil
	}
	holder, err := s.readHolder(reply)
	if err != nil {
		return locker.State{}, err
	}
	holds, err := reply.Int(holder.next)
	if holder.released && s.Permits == 0 {
		holds = 0
	}
	if err == nil && (holds < 0 || holds > math.MaxInt32) {
		err = fmt.Errorf("%d holds", holds)
	}
	shared, errShared := reply.Int(holder.next + 1)
	if err := errors.Join(err, errShared); err != nil {
		return locker.State{}, malformed(err)
	}
	state := locker.State{
		Held: true, Owner: holder.owner, Note: holder.note, Holds: int(holds), Left: fromMillis(max(holder.left, 0)),
		Waiters: waiters,
	}
	if shared == 1 {
		state.Mode = locker.Shared
	}
	if s.Permits == 0 {
		if at := holder.next + 2; at < s.stateLen(reply) {
			state.Fence, err = readFence(reply, at)
		}
		return state, err
	}
	limit, errLimit := reply.Int(holder.next + 2)
	used, errUsed := reply.Int(holder.next + 3)
	if err := errors.Join(errLimit, errUsed); err != nil {
		return locker.State{}, malformed(err)
	}
	state.Permits, state.Free = int(limit), int(max(limit-used, 0))
	return state, nil
}

// readWaiters reads the number of waiters, the last item of a reply of Inspect.
func (s *Spec) readWaiters(reply driver.Reply) (int, error) {
	if !s.Queue {
		return 0, nil
	}
	waiters, err := reply.Int(s.stateLen(reply))
	if err == nil && (waiters < -1 || waiters > math.MaxInt32) {
		err = fmt.Errorf("%d waiters", waiters)
	}
	if err != nil {
		return 0, malformed(err)
	}
	return int(waiters), nil
}

// stateLen returns the number of items of a reply of Inspect without the number of waiters.
func (s *Spec) stateLen(reply driver.Reply) int {
	if s.Queue {
		return reply.Len() - 1
	}
	return reply.Len()
}

// valuesAt returns the index of the first value behind a state, in a reply of Inspect.
func (s *Spec) valuesAt() int {
	at := 7 // behind status, owner, note, left, holds, mode, fence
	if s.ParseValue != nil {
		at-- // one value in place of owner and note
	}
	if s.Permits > 0 {
		at++ // limit and used in place of the fence
	}
	return at
}

// fromMillis converts ms of a reply. A foreign key may make them large. The result is at most half of
// the range of a Duration, 146 years: callers add to it.
func fromMillis(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/2/int64(time.Millisecond))) * time.Millisecond
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

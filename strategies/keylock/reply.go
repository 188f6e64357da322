package keylock

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// SameOwner makes the CheckResume of a strategy whose values are tokens, and whose holds keep their owner.
func SameOwner(strategy string) func(locker.Request) error {
	return func(req locker.Request) error {
		if len(req.Resume.Grant().Token) != lease.TokenLen {
			return driver.Invalid("Request.Resume", "a handle of another strategy", "a handle of a lock of "+strategy)
		}
		if owner := req.Resume.Owner(); req.Owner != "" && req.Owner != owner {
			return driver.Invalid("Request.Owner", fmt.Sprintf("%.64q", req.Owner), fmt.Sprintf("the handle's, %.64q, or none", owner))
		}
		return nil
	}
}

// ReadHolder reads who holds from a refusal {status, owner, note, left} or {status, owner, note, left, again}, in ms.
func ReadHolder(reply driver.Reply) (Holder, error) {
	owner, err1 := reply.Text(1)
	note, err2 := reply.Text(2)
	left, err3 := reply.Int(3)
	h := Holder{Owner: owner, Note: note, Left: left, Again: left}
	var err4 error
	if reply.Len() > 4 {
		h.Again, err4 = reply.Int(4)
	}
	return h, errors.Join(err1, err2, err3, err4)
}

// ReadState reads the reply of an inspect script: {1, owner, note, ms, holds, mode}, where the mode is 1 for a shared one and
// may be left out; {0} free; {-2, text} a key that is not ours.
func ReadState(key string, reply driver.Reply) (locker.State, error) {
	status, err := reply.Int(0)
	switch {
	case err != nil:
		return locker.State{}, Malformed(err)
	case status == replyForeign:
		return locker.State{}, Foreign(key, reply)
	case status == replyNo:
		return locker.State{}, nil
	case status != replyYes:
		return locker.State{}, Malformed(fmt.Errorf("status %d", status))
	}
	holder, err := ReadHolder(reply)
	holds, err2 := reply.Int(4)
	if err2 == nil && (holds < 1 || holds > math.MaxInt32) {
		err2 = fmt.Errorf("%d holds", holds)
	}
	if err := errors.Join(err, err2); err != nil {
		return locker.State{}, Malformed(err)
	}
	state := locker.State{Held: true, Owner: holder.Owner, Note: holder.Note, Holds: int(holds), Left: Millis(max(holder.Left, 0))}
	if shared, err := reply.Int(5); err == nil && shared == 1 {
		state.Mode = locker.Shared
	}
	return state, nil
}

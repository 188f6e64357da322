package reentrant

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/lease"
)

// checkResume refuses the handles of other strategies and a change of owner.
func checkResume(req locker.Request) error {
	if len(req.Resume.Grant().Token) != locker.TokenLen {
		return driver.Invalid("Request.Resume", "a handle of another strategy", "a handle of a reentrant lock")
	}
	if owner := req.Resume.Owner(); req.Owner != "" && req.Owner != owner {
		return driver.Invalid("Request.Owner", fmt.Sprintf("%.64q", req.Owner), fmt.Sprintf("the handle's, %.64q, or none", owner))
	}
	return nil
}

// readHolder reads who holds from acquire's refusal.
func readHolder(reply driver.Reply) (lease.Holder, error) {
	owner, err1 := reply.Text(1)
	note, err2 := reply.Text(2)
	left, err3 := reply.Int(3)
	return lease.Holder{Owner: owner, Note: note, Left: left}, errors.Join(err1, err2, err3)
}

// The first value of inspect's reply.
const (
	replyForeign = -2
	replyFree    = 0
)

// readState reads the reply of inspect.
func readState(key string, reply driver.Reply) (locker.State, error) {
	status, err := reply.Int(0)
	switch {
	case err != nil:
		return locker.State{}, lease.Malformed(err)
	case status == replyForeign:
		return locker.State{}, lease.Foreign(key, reply)
	case status == replyFree:
		return locker.State{}, nil
	}
	owner, err1 := reply.Text(1)
	note, err2 := reply.Text(2)
	holds, err3 := reply.Int(3)
	left, err4 := reply.Int(4)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return locker.State{}, lease.Malformed(err)
	}
	return locker.State{Held: true, Owner: owner, Note: note, Holds: int(holds), Left: lease.Millis(left)}, nil
}

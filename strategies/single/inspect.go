package single

import (
	"errors"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// readState reads the reply of inspect.
func readState(_ string, reply driver.Reply) (locker.State, error) {
	left, err := reply.Int(1)
	if err == nil && reply.IsNil(0) {
		return locker.State{}, nil
	}
	value, err2 := reply.Text(0)
	if err := errors.Join(err, err2); err != nil {
		return locker.State{}, keylock.Malformed(err)
	}
	state := locker.State{Held: true, Holds: 1, Left: keylock.Millis(max(left, 0))}
	state.Owner, state.Note = parseValue(value)
	return state, nil
}

// readHolder reads who holds from acquire's refusal.
func readHolder(reply driver.Reply) (keylock.Holder, error) {
	value, err := reply.Text(1)
	left, err2 := reply.Int(2)
	holder := keylock.Holder{Left: left, Again: left}
	holder.Owner, holder.Note = parseValue(value)
	return holder, errors.Join(err, err2)
}

package keylock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// FindHolds is for [locker.Break]. The returned function releases each hold by its value, as
// ReleaseHandle does.
func (l *Locker) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	args := []string{"holds"}
	if l.spec.Shared {
		args = append(args, millis(l.cfg.ttl(0)+counterLife))
	}
	state, reply, err := l.inspect(ctx, name, args...)
	if err != nil || !state.Held {
		return locker.State{}, nil, err
	}
	var values []string
	for i := l.spec.valuesAt(); i < l.spec.stateLen(reply); i++ {
		value, err := reply.Text(i)
		if err != nil {
			return locker.State{}, nil, malformed(err)
		}
		values = append(values, value)
	}
	if len(values) == 0 {
		return locker.State{}, nil, fmt.Errorf("%s cannot tell how to end what key %.64q holds: %w", l.spec.Name,
			l.cfg.Prefix+name, errors.ErrUnsupported)
	}
	return state, func(ctx context.Context) error { return l.endHolds(ctx, name, values) }, nil
}

// endHolds ends the holds of those values.
func (l *Locker) endHolds(ctx context.Context, name string, values []string) error {
	ended := 0
	for i, value := range values {
		err := lease.ContextErr(ctx)
		if err == nil {
			err = l.endHold(ctx, l.foundHold(name, value, 0))
		}
		switch {
		case err == nil:
			ended++
		case !errors.Is(err, locker.ErrLost):
			return fmt.Errorf("%d of %d holds may remain: %w", len(values)-i, len(values), err)
		}
	}
	if ended == 0 {
		return locker.ErrNotHeld
	}
	return nil
}

// endHold releases h. It sends one command, and no more, for a hold of another library: the next hold
// may have the same value.
func (l *Locker) endHold(ctx context.Context, h *keyHold) error {
	op := lease.Op{Kind: lease.OpRelease}
	if !l.spec.foreign(h.value) {
		_, err := h.Do(ctx, op)
		return err
	}
	bound := bounded.New(ctx, h.timeout)
	defer bound.Stop()
	call := h.endCall(h.value, op)
	err := call.send(bound)
	switch {
	case err == nil:
		_, err = h.released(call.reply)
	case !driver.NotExecuted(err):
		err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
	}
	return lostIfOtherType(err)
}

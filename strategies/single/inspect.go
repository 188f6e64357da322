package single

import (
	"context"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Inspect implements locker.Inspector with one script. A key of another type is an error.
func (l *Locker) Inspect(ctx context.Context, name string) (locker.State, error) {
	state, err := l.inspect(ctx, name)
	if err != nil {
		return locker.State{}, &locker.OpError{Op: "inspect", Name: name, Err: err}
	}
	return state, nil
}

func (l *Locker) inspect(ctx context.Context, name string) (locker.State, error) {
	key, err := l.check(ctx, locker.Request{Name: name})
	if err != nil {
		return locker.State{}, err
	}
	bound := driver.Bound(ctx, l.cfg.attemptTimeout(l.cfg.ttl(0)))
	defer bound.Stop()
	reply, err := l.drv.Eval(bound, inspectScript, []string{key}, nil)
	if err != nil || reply.IsNil(0) {
		return locker.State{}, err
	}
	value, err := reply.Text(0)
	if err != nil {
		return locker.State{}, malformed(err)
	}
	left, err := reply.Int(1)
	if err != nil {
		return locker.State{}, malformed(err)
	}
	state := locker.State{Held: true, Holds: 1, Left: fromMillis(max(left, 0))}
	state.Owner, state.Note = parseValue(value)
	return state, nil
}

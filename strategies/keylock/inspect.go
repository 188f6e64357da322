package keylock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Inspect implements locker.Inspector with one script.
func (l *Locker) Inspect(ctx context.Context, name string) (locker.State, error) {
	state, _, err := l.inspect(ctx, name)
	return state, opError("inspect", name, err)
}

// inspect runs Inspect with the given arguments. It returns the whole reply too.
func (l *Locker) inspect(
	ctx context.Context, name string, args ...string,
) (state locker.State, reply driver.Reply, err error) {
	if l.spec.Inspect == nil {
		return state, reply, fmt.Errorf("%s: %w", l.spec.Name, errors.ErrUnsupported)
	}
	key, err := l.check(ctx, locker.Request{Name: name})
	if err != nil {
		return state, reply, err
	}
	bound := bounded.New(ctx, l.cfg.attemptTimeout(l.cfg.ttl(0)))
	defer bound.Stop()
	keys := []string{key, l.spec.counterKey(key)}
	if l.spec.Queue {
		keys = append(keys, queueKey(key))
	}
	reply, err = l.drv.Eval(bound, l.spec.Inspect, keys, args)
	// it can do without the queue
	if code := driver.CodeOf(err); l.spec.Queue && (code == "NOPERM" || code == "TRYAGAIN") {
		reply, err = l.drv.Eval(bound, l.spec.Inspect, keys[:2], args)
	}
	// and without the counter
	if driver.CodeOf(err) == "NOPERM" && driver.NotExecuted(err) {
		reply, err = l.drv.Eval(bound, l.spec.Inspect, keys[:1], args)
	}
	if err == nil {
		state, err = l.spec.readState(reply, key)
	}
	if err != nil {
		return locker.State{}, reply, err
	}
	return state, reply, nil
}

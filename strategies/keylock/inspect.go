package keylock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

//go:embed lua/inspect.lua
var inspectLua string

// InspectLua returns the Lua of the Inspect of a Spec with Queue: inspect, and what adds the number
// of waiters to its reply. Put it behind the functions that inspect needs.
func InspectLua(inspect string) string {
	return QueueLua + "local function inspect()\n" + inspect + "\nend\n" + inspectLua
}

// Inspect implements locker.Inspector with one script.
func (l *Locker) Inspect(ctx context.Context, name string) (locker.State, error) {
	key, err := l.checkName(ctx, name)
	if err != nil {
		return locker.State{}, &locker.OpError{Op: "inspect", Name: name, Err: err}
	}
	state, _, err := l.inspect(ctx, key)
	if err != nil {
		return locker.State{}, &locker.OpError{Op: "inspect", Name: name, Err: err}
	}
	return state, nil
}

// checkName returns the key of a name that is to be inspected.
func (l *Locker) checkName(ctx context.Context, name string) (key string, err error) {
	if l.spec.Inspect == nil {
		return "", fmt.Errorf("%s: %w", l.spec.Name, errors.ErrUnsupported)
	}
	if err := checkContext(ctx); err != nil {
		return "", err
	}
	return l.check(ctx, locker.Request{Name: name})
}

// inspect runs Inspect with the given arguments. It returns the whole reply too.
func (l *Locker) inspect(ctx context.Context, key string, args ...string) (locker.State, driver.Reply, error) {
	bound := driver.Bound(ctx, l.cfg.attemptTimeout(l.cfg.ttl(0)))
	defer bound.Stop()
	keys := []string{key, counterKey(key)}
	if l.spec.Queue {
		keys = append(keys, queueKey(key))
	}
	reply, err := l.drv.Eval(bound, l.spec.Inspect, keys, args)
	// it can do without the queue
	if code := driver.CodeOf(err); l.spec.Queue && (code == "NOPERM" || code == "TRYAGAIN") {
		reply, err = l.drv.Eval(bound, l.spec.Inspect, keys[:2], args)
	}
	if err != nil {
		return locker.State{}, reply, err
	}
	state, err := l.spec.readState(reply, key)
	return state, reply, err
}

//realtime:ok mutants run in bubbles

package conformance

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// luaEndSilently deletes a key if it holds the value, and wakes nobody.
const luaEndSilently = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`

// flawedBreaks is a strategy with a flaw in Break.
type flawedBreaks struct {
	locker.Locker
	drv driver.Driver

	deletes bool // it deletes the key, whatever its value, until it gets an answer
	silent  bool // it compares, and wakes nobody
	idle    bool // it ends nothing
}

func (f flawedBreaks) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	state, end, err := f.Locker.(breaker).FindHolds(ctx, name)
	if err != nil || end == nil {
		return state, nil, err
	}
	script, value := driver.NewScript(`return redis.call('DEL', KEYS[1])`), ""
	switch {
	case f.idle:
		return state, func(context.Context) error { return nil }, nil
	case f.deletes:
	case f.silent:
		script = driver.NewScript(luaEndSilently)
		reply, err := f.drv.Eval(ctx, driver.NewScript(`return {redis.call('GET', KEYS[1])}`), []string{name}, nil)
		if err != nil {
			return state, nil, err
		}
		if value, err = reply.Text(0); err != nil {
			return state, nil, err
		}
	default:
		return state, end, nil
	}
	return state, func(ctx context.Context) error {
		for {
			bound, cancel := context.WithTimeout(ctx, attemptTimeout)
			_, err := f.drv.Eval(bound, script, []string{name}, []string{value})
			cancel()
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	}, nil
}

// firstNodes is a quorum whose Break ends holds on the first nodes alone.
type firstNodes struct {
	locker.Locker
	nodes []locker.Locker
}

func (f firstNodes) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	state, end, err := f.Locker.(breaker).FindHolds(ctx, name)
	if err != nil || end == nil {
		return state, nil, err
	}
	return state, func(ctx context.Context) error {
		for _, n := range f.nodes[:majority] {
			if _, err := locker.Break(ctx, n, name); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func TestBreakMutants(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	breaks := func(f flawedBreaks) *Harness {
		return around(newSingle, Capabilities{}, func(l locker.Locker, drv driver.Driver) locker.Locker {
			f := f // the cases run side by side
			f.Locker, f.drv = l, drv
			return f
		})
	}
	m.add("a Break that ends nothing", breaks(flawedBreaks{idle: true}), sound, "Break ends a hold, whoever has it")
	m.add("a Break that compares nothing", breaks(flawedBreaks{deletes: true}), sound,
		"a Break whose reply is lost leaves the next holder alone")
	m.add("a Break that wakes nobody", breaks(flawedBreaks{silent: true}), sound, "Break wakes a waiter")
	m.add("a Break at a majority", aroundRedlock(func(l locker.Locker, nodes []locker.Locker) locker.Locker {
		return firstNodes{l, nodes}
	}), sound, "Break ends a quorum's hold")
	m.convict()
}

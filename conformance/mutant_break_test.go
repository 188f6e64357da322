//realtime:ok mutants run in bubbles

package conformance

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// luaEndSilently deletes a key that holds a value, and wakes nobody.
const luaEndSilently = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`

// flawedBreaks is a strategy with a flaw in Break.
type flawedBreaks struct {
	locker.Locker
	drv driver.Driver

	deletes bool // it deletes the key, whatever that holds, until it gets an answer
	silent  bool // it compares, and wakes nobody
	idle    bool // it ends nothing
}

func (f flawedBreaks) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	state, end, err := f.Locker.(locker.Breaker).FindHolds(ctx, name)
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

// firstNodes is a quorum whose Break ends what the first nodes hold.
type firstNodes struct {
	locker.Locker
	nodes []locker.Locker
}

func (f firstNodes) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	state, end, err := f.Locker.(locker.Breaker).FindHolds(ctx, name)
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
	one := func(f flawedBreaks) *Harness {
		return &Harness{Dial: plain, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			l, err := newSingle(drv, bound)
			f.Locker, f.drv = l, drv
			return f, err
		}}
	}
	quorum := func(around func(locker.Locker, []locker.Locker) locker.Locker) *Harness {
		return &Harness{Dial: plain, NewQuorum: func(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error) {
			l, err := newRedlock(nodes, need, bound)
			return around(l, nodes), err
		}, New: newSingle}
	}
	suspects := []suspect{
		{
			"a Break that ends nothing", one(flawedBreaks{idle: true}), one(flawedBreaks{}),
			[]string{"Break ends a hold, whoever has it"},
		},
		{
			"a Break that compares nothing", one(flawedBreaks{deletes: true}), one(flawedBreaks{}),
			[]string{"a Break whose reply is lost leaves the next holder alone"},
		},
		{
			"a Break that wakes nobody", one(flawedBreaks{silent: true}), one(flawedBreaks{}),
			[]string{"Break wakes a waiter"},
		},
		{
			"a Break at a majority", quorum(func(l locker.Locker, nodes []locker.Locker) locker.Locker { return firstNodes{l, nodes} }),
			quorum(func(l locker.Locker, _ []locker.Locker) locker.Locker { return l }),
			[]string{"Break ends a quorum's hold"},
		},
	}
	for _, m := range []struct {
		name          string
		with          func(t *testing.T, sound, flawed string) *Harness
		sound, flawed string
		caught        string
	}{
		{
			"a Break that ends one hold of an owner", reentrantWith, "      tokens[n] = fields[i]", "      tokens[1] = fields[i]",
			"Break ends all holds of an owner",
		},
		{
			"a Break that leaves a minimum hold", reentrantWith, "    tokens[n + 1] = kept_name(lock)", "    tokens[n + 1] = string.rep('x', 22)",
			"Break ends a minimum hold",
		},
		{
			"a Break that ends one reader", rwhashWith, "      tokens[#tokens + 1] = fields[i]", "      tokens[1] = fields[i]",
			"Break ends all readers",
		},
		{
			"a Break that leaves the fencing token", rwhashWith, "return {1, raise_fence(KEYS[2], ARGV[2], last, ARGV[3])}", "return {1, ARGV[2]}",
			"Break ends all readers",
		},
		{
			"a Break that ends one hold of permits", semaphoreWith, "    reply[#reply + 1] = value", "    reply[8] = value",
			"Break ends all permits",
		},
	} {
		suspects = append(suspects, suspect{m.name, m.with(t, m.sound, m.flawed), m.with(t, "", ""), []string{m.caught}})
	}
	convict(t, suspects)
}

// reentrantWith is strategies/reentrant with flawed in place of sound in its scripts.
func reentrantWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{
		Dial: dialWith(t, sound, flawed), Can: Capabilities{Reentrant: true, Hash: true, MinHold: true},
		New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			return reentrant.New(drv, reentrant.Config{AttemptTimeout: bound.Attempt})
		},
	}
}

// rwhashWith is strategies/rwhash with flawed in place of sound in its scripts.
func rwhashWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{
		Dial: dialWith(t, sound, flawed), Can: Capabilities{Shared: true, Convert: true, Hash: true, MinHold: true},
		New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			return rwhash.New(drv, rwhash.Config{AttemptTimeout: bound.Attempt})
		},
	}
}

package security_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// strategy is a strategy with a rule in SECURITY.md.
type strategy struct {
	new func(drv driver.Driver, prefix string) (lockerInspector, error)
	// more calls its methods beyond an exclusive lock.
	more func(c *cycle, name string)
	// permits: it has permits, so it can be no node of a quorum and elects no leader.
	permits bool
	// siblings names the fence counter and the channel of releases. nil: as docs/contracts.md defines
	// them.
	siblings func(name string) (counter, channel string)
}

// beside returns the fence counter and the channel of a name's releases.
func (s strategy) beside(name string) (counter, channel string) {
	if s.siblings != nil {
		return s.siblings(name)
	}
	counter, _ = sibling.Of(name, sibling.FenceSuffix)
	channel, _ = sibling.Of(name, sibling.WakeSuffix)
	return counter, channel
}

type lockerInspector interface {
	locker.Locker
	locker.Inspector
}

const attemptTimeout = time.Minute

// strategies are by the name of their package, also the user's name in the rule.
var strategies = map[string]strategy{
	"single": {
		new: func(drv driver.Driver, prefix string) (lockerInspector, error) {
			return single.New(drv, single.Config{Prefix: prefix, AttemptTimeout: attemptTimeout})
		},
		more: func(*cycle, string) {},
	},
	"reentrant": {
		new: func(drv driver.Driver, prefix string) (lockerInspector, error) {
			return reentrant.New(drv, reentrant.Config{Prefix: prefix, AttemptTimeout: attemptTimeout})
		},
		more: func(c *cycle, name string) { c.crowd(locker.Request{Name: name}) },
	},
	"rwhash": {
		new: func(drv driver.Driver, prefix string) (lockerInspector, error) {
			return rwhash.New(drv, rwhash.Config{Prefix: prefix, AttemptTimeout: attemptTimeout})
		},
		more: func(c *cycle, name string) {
			c.crowd(locker.Request{Name: name + "1", Mode: locker.Shared})
			c.convert(locker.Request{Name: name + "2", Fenced: true})
		},
	},
	"semaphore": {
		new: func(drv driver.Driver, prefix string) (lockerInspector, error) {
			return semaphore.New(drv, semaphore.Config{Permits: 1, Prefix: prefix, AttemptTimeout: attemptTimeout})
		},
		more: func(c *cycle, name string) {
			c.locks = locker.Must(semaphore.New(c.drv, semaphore.Config{Permits: 17, AttemptTimeout: attemptTimeout}))
			c.crowd(locker.Request{Name: name})
		},
		permits: true,
	},
	"redisson": {
		new: func(drv driver.Driver, prefix string) (lockerInspector, error) {
			return redisson.New(drv, redisson.Config{Prefix: prefix, AttemptTimeout: attemptTimeout})
		},
		more: func(c *cycle, name string) { c.mode(locker.Request{Name: name}) },
		siblings: func(name string) (counter, channel string) {
			switch open, closed := strings.Contains(name, "{"), strings.Contains(name, "}"); {
			case open != closed:
				return "", ""
			case !open:
				name = "{" + name + "}"
			}
			return "redisson_lock_token:" + name, "redisson_lock__channel:" + name
		},
	},
}

// cycle makes all calls of the locks of one strategy over one driver. It goes on after errors.
type cycle struct {
	ctx      context.Context
	drv      driver.Driver
	locks    lockerInspector
	owner    string
	note     string
	new      func(prefix string) (lockerInspector, error)
	patience time.Duration // of a waiter
	errs     []error
}

// run makes all calls with names beginning with name, and returns the failed ones.
func (s strategy) run(t *testing.T, drv driver.Driver, name string, patience time.Duration) *cycle {
	t.Helper()
	return s.runAs(t, drv, name, "one", "why", patience)
}

// runAs is run with an owner and a note.
func (s strategy) runAs(t *testing.T, drv driver.Driver, name, owner, note string, patience time.Duration) *cycle {
	t.Helper()
	c := &cycle{ctx: t.Context(), drv: drv, owner: owner, note: note, patience: patience}
	c.new = func(prefix string) (lockerInspector, error) { return s.new(drv, prefix) }
	var err error
	if c.locks, err = c.new(""); err != nil {
		t.Fatal(err)
	}
	c.hold(locker.Request{Name: name + "plain"})
	c.hold(locker.Request{Name: name + "fenced", Fenced: true})
	c.several(name+"first", name+"second")
	c.takeOver(locker.Request{Name: name + "resumed", Fenced: true})
	_, wake := s.beside(name + "awaited")
	c.wait(locker.Request{Name: name + "awaited"}, wake)
	if !s.permits {
		c.lead(name + "led")
		c.quorum(name)
	}
	s.more(c, name+"more")
	return c
}

// acquire is one attempt on a bare Locker.
func (s strategy) acquire(t *testing.T, drv driver.Driver, name string) (*locker.Lock, error) {
	t.Helper()
	l, err := s.new(drv, "")
	check.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return l.Acquire(ctx, locker.Request{Name: name})
}

func (c *cycle) check(err error, what string) bool {
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", what, err))
	}
	return err == nil
}

// acquire returns nil if it fails.
func (c *cycle) acquire(l locker.Locker, req locker.Request) *locker.Lock {
	req.Owner, req.Note = c.owner, c.note
	lock, err := l.Acquire(c.ctx, req)
	c.check(err, "acquire")
	return lock
}

// refused checks that another attempt is refused, and that the error names the holder.
func (c *cycle) refused(name string) {
	_, err := c.locks.Acquire(c.ctx, locker.Request{Name: name, Owner: c.owner + "'s rival", NoWait: true})
	if err == nil {
		err = errors.New("acquired what is held")
	}
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		c.known(held.Owner, held.Note, "refusal")
		return
	}
	c.check(err, "the other's acquire")
}

// known checks the owner and the note.
func (c *cycle) known(owner, note, what string) {
	if owner != c.owner || note != c.note {
		c.check(fmt.Errorf("owner %q and note %q; want %q and %q", owner, note, c.owner, c.note), what)
	}
}

// hold acquires, is refused, inspects, renews and releases. It acquires again, and breaks this
// hold.
func (c *cycle) hold(req locker.Request) {
	lock := c.acquire(c.locks, req)
	if lock == nil {
		return
	}
	c.refused(req.Name)
	if state, err := c.locks.Inspect(c.ctx, req.Name); c.check(err, "inspect") {
		c.known(state.Owner, state.Note, "inspect")
	}
	c.check(lock.Renew(c.ctx, time.Hour), "renew")
	c.check(lock.SetNote(c.ctx, c.note), "note")
	c.check(lock.Release(c.ctx), "release")
	if c.acquire(c.locks, req) != nil {
		_, err := locker.Break(c.ctx, c.locks, req.Name)
		c.check(err, "break")
	}
}

// several acquires two locks by one command, if the driver shows a single server. Then another is
// refused.
func (c *cycle) several(first, second string) {
	reqs := []locker.Request{
		{Name: first, Owner: c.owner, Note: c.note, NoWait: true},
		{Name: second, Owner: c.owner, Note: c.note, NoWait: true, Fenced: true},
	}
	locks, err := locker.AcquireAll(c.ctx, c.locks, reqs)
	if !c.check(err, "acquire several") {
		return
	}
	c.refused(first)
	c.refused(second)
	c.check(locks.Release(c.ctx), "release several")
}

// takeOver resumes, releases, resumes again, raises the fencing token and releases.
func (c *cycle) takeOver(req locker.Request) {
	lock := c.acquire(c.locks, req)
	if lock == nil {
		return
	}
	for _, last := range []bool{false, true} {
		resumed, err := locker.Resume(c.ctx, c.locks, lock.Handle())
		if !c.check(err, "resume") {
			return
		}
		var inner lease.Lease
		resumed.Hold().Wrap(func(l lease.Lease) lease.Lease { inner = l; return l })
		if !last {
			_, err = inner.Do(c.ctx, lease.Op{Kind: lease.OpUndo})
			c.check(err, "undo")
			continue
		}
		_, err = inner.Do(c.ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: resumed.Fence() + 1})
		c.check(err, "raise fence")
		c.check(resumed.Release(c.ctx), "release")
	}
}

// wait waits for a release. Only a wake-up on the channel reports it in time.
func (c *cycle) wait(req locker.Request, wake string) {
	sub, err := c.drv.Subscribe(c.ctx, wake) // the waiter shares it, and so subscribes at once
	if !c.check(err, "subscribe") {
		return
	}
	defer sub.Close()
	waiting := locker.Must(retry.New(retry.Config{Policy: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }}))
	lock := c.acquire(c.locks, req)
	if lock == nil {
		return
	}
	queued := make(chan struct{}, 1) // it listens, and its attempt asked for a place in the queue
	attempts := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		lock, err := c.locks.Acquire(ctx, req)
		if w, _ := lease.WaitingFrom(ctx); w.Subscribed && errors.Is(err, locker.ErrNotAcquired) {
			select {
			case queued <- struct{}{}:
			default:
			}
		}
		return lock, err
	})
	ended := make(chan error, 1)
	go func() {
		second, err := waiting(attempts).Acquire(c.ctx, locker.Request{Name: req.Name, Owner: c.owner + "'s rival", MaxWait: c.patience})
		if err == nil {
			err = second.Release(c.ctx)
		}
		ended <- err
	}()
	select {
	case <-queued:
		c.check(lock.Release(c.ctx), "release")
		err = <-ended
	case err = <-ended:
		c.check(lock.Release(c.ctx), "release")
	}
	c.check(err, "wait")
}

// renewByHold renews a lock as the watchdog does.
func (c *cycle) renewByHold(req locker.Request) {
	lock := c.acquire(c.locks, req)
	if lock == nil {
		return
	}
	c.check(lock.Hold().Renew(c.ctx), "renewal by the watchdog")
	c.check(lock.Release(c.ctx), "release")
}

// lead leads for one term, and inspects the leader.
func (c *cycle) lead(name string) {
	ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	err := leader.Run(ctx, c.locks, leader.Config{Name: name, Note: c.note, Lead: func(ctx context.Context, term int64) error {
		for now, err := range leader.Observe(ctx, c.locks, name, 0) {
			if err == nil && now != (leader.Leader{Note: c.note, Term: term}) {
				err = fmt.Errorf("%+v leads, want %q in term %d", now, c.note, term)
			}
			return backoff.Permanent(err)
		}
		return ctx.Err()
	}})
	c.check(err, "lead")
}

// quorum holds a fenced lock on three nodes, here three keys of one server.
func (c *cycle) quorum(name string) {
	nodes := make([]locker.Locker, 3)
	for i := range nodes {
		node, err := c.new(fmt.Sprintf("%sn%d.", name, i))
		if !c.check(err, "new") {
			return
		}
		nodes[i] = node
	}
	l := locker.Must(redlock.New(nodes, redlock.Config{AttemptTimeout: attemptTimeout}))
	lock := c.acquire(l, locker.Request{Name: "quorum", Fenced: true})
	if lock == nil {
		return
	}
	_, err := l.Inspect(c.ctx, "quorum")
	c.check(err, "quorum: inspect")
	c.check(lock.Renew(c.ctx, time.Hour), "quorum: renew")
	c.check(lock.Release(c.ctx), "quorum: release")
	if lock = c.acquire(l, locker.Request{Name: "quorum"}); lock != nil {
		_, err := locker.Break(c.ctx, l, "quorum")
		c.check(err, "quorum: break")
		_ = lock.Release(c.ctx) // for a node that granted the lock after Break's look
	}
}

// crowd acquires many holds, and releases them.
func (c *cycle) crowd(req locker.Request) {
	var all []*locker.Lock
	for range 17 { // dead holds are looked for at 16
		if lock := c.acquire(c.locks, req); lock != nil {
			all = append(all, lock)
		}
	}
	for _, lock := range all {
		c.check(lock.Release(c.ctx), "release of one of many")
	}
}

var setMode = driver.NewScript(`return redis.call('HSET', KEYS[1], 'mode', 'write')`)

// mode releases a hold beside which an RReadWriteLock of Redisson has left its mode.
func (c *cycle) mode(req locker.Request) {
	lock := c.acquire(c.locks, req)
	if lock == nil {
		return
	}
	_, err := c.drv.Eval(c.ctx, setMode, []string{req.Name}, nil)
	c.check(err, "set the mode")
	c.check(lock.Release(c.ctx), "release beside a mode")
}

// convert downgrades and upgrades.
func (c *cycle) convert(req locker.Request) {
	lock := c.acquire(c.locks, req)
	if lock == nil {
		return
	}
	c.check(lock.Downgrade(c.ctx), "downgrade")
	c.check(lock.Upgrade(c.ctx), "upgrade")
	c.check(lock.Release(c.ctx), "release")
}

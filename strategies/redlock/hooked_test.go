package redlock_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// hooked is a node in memory whose calls a test delays or fails, before or after they are executed.
type hooked struct {
	*lockertest.Locker

	mu            sync.Mutex
	before, after func(what string) error
}

func (n *hooked) hook(before, after func(what string) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.before, n.after = before, after
}

func hookAll(nodes []*hooked, before, after func(what string) error) {
	for _, n := range nodes {
		n.hook(before, after)
	}
}

func (n *hooked) run(before bool, what string) error {
	n.mu.Lock()
	f := n.after
	if before {
		f = n.before
	}
	n.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(what)
}

func (n *hooked) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	what := "acquire"
	if !req.Resume.IsZero() {
		what = "resume"
	}
	if err := n.run(true, what); err != nil {
		return nil, err
	}
	lock, err := n.Locker.Acquire(context.WithoutCancel(ctx), req)
	if err == nil {
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return &hookedLease{inner, n} })
	}
	if late := n.run(false, what); late != nil {
		return nil, late
	}
	return lock, err
}

type hookedLease struct {
	lease.Lease
	node *hooked
}

func (l *hookedLease) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if err := l.node.run(true, op.Kind.String()); err != nil {
		return lease.Term{}, err
	}
	term, err := l.Lease.Do(context.WithoutCancel(ctx), op)
	if late := l.node.run(false, op.Kind.String()); late != nil {
		return lease.Term{}, late
	}
	return term, err
}

// on calls f before or after an operation.
func on(op string, f func()) func(string) error {
	return func(what string) error {
		if what == op {
			f()
		}
		return nil
	}
}

// fails fails these operations; slow makes them take d.
func fails(err error, ops ...string) func(string) error {
	return func(what string) error {
		if slices.Contains(ops, what) {
			return err
		}
		return nil
	}
}

func slow(d time.Duration, ops ...string) func(string) error {
	return func(what string) error {
		if slices.Contains(ops, what) {
			sleep(d)
		}
		return nil
	}
}

type hookedCluster struct {
	*redlock.Locker
	n []*hooked
}

func overHooked(t *testing.T, n int, cfg redlock.Config) *hookedCluster {
	t.Helper()
	c := &hookedCluster{}
	var lockers []locker.Locker
	for range n {
		node := &hooked{Locker: lockertest.New()}
		c.n = append(c.n, node)
		lockers = append(lockers, node)
	}
	c.Locker = locker.Must(redlock.New(lockers, cfg))
	return c
}

func inHooked(t *testing.T, n int, cfg redlock.Config, f func(t *testing.T, c *hookedCluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer sleep(time.Hour) // what is behind ends
		f(t, overHooked(t, n, cfg))
	})
}

// eachInHooked runs f as inHooked does, for each entry of a table.
func eachInHooked[T any](t *testing.T, n int, cfg redlock.Config, tests map[string]T, f func(*testing.T, *hookedCluster, T)) {
	t.Helper()
	t.Parallel()
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			inHooked(t, n, cfg, func(t *testing.T, c *hookedCluster) { f(t, c, tt) })
		})
	}
}

func (c *hookedCluster) take(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name, req.TTL = name, cmp.Or(req.TTL, ttl)
	lock := locker.Must(c.Acquire(t.Context(), req))
	synctest.Wait()
	return lock
}

func (c *hookedCluster) at(owner string) (where []int) {
	for i, n := range c.n {
		if s, err := n.Inspect(bg, name); err == nil && s.Held && s.Owner == owner {
			where = append(where, i)
		}
	}
	return where
}

// wantAt demands that the owner "me" holds at so many nodes.
func (c *hookedCluster) wantAt(t *testing.T, nodes int) {
	t.Helper()
	if at := c.at("me"); len(at) != nodes {
		t.Errorf("it is held at nodes %v, want %d of them", at, nodes)
	}
}

// excludes demands that nobody else can acquire the lock while held says that it is held.
func (c *hookedCluster) excludes(t *testing.T, held *locker.Lock, when string) {
	t.Helper()
	if held.Err() != nil {
		return // it said so
	}
	other, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute, Owner: "other"})
	if err == nil && held.Err() == nil {
		t.Errorf("%s: two hold at once: the first has %v left and is at nodes %v, mode %v; the other is at %v", when,
			time.Until(held.Deadline()), c.at("me"), held.Mode(), c.at("other"))
	}
	if err == nil {
		_ = other.Release(bg)
	}
}

// renewPast renews the Lease of a lock without its Lock, which does not learn the outcome.
func renewPast(lock *locker.Lock) {
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		_, _ = inner.Do(bg, lease.Op{Kind: lease.OpRenew})
		return inner
	})
}

// dice are random numbers for one purpose: in which order others draw theirs does not change them.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func newDice(seed, purpose uint64) *dice { return &dice{random: rand.New(rand.NewPCG(seed, purpose))} }

func (d *dice) upTo(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

func (d *dice) lasts(upTo time.Duration) time.Duration { return time.Duration(d.upTo(int(upTo))) }

// nobodyHolds demands that nothing is left behind at the nodes.
func nobodyHolds(t *testing.T, nodes []*hooked) {
	t.Helper()
	for i, n := range nodes {
		if s, err := n.Inspect(bg, name); s.Held || err != nil {
			t.Errorf("node %d is still held by %q for %v, %v", i, s.Owner, s.Left, err)
		}
	}
}

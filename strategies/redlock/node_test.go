package redlock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const (
	name = "job"
	ttl  = 30 * time.Second
	ms   = time.Millisecond
)

var (
	bg      = context.Background()
	errDown = errors.New("connection refused") // a transport error
)

// hook runs when a node is asked for an operation. It may take time; its error is the outcome.
type hook func(what string) error

// node is a node in memory. A test makes its operations take time, hang and fail, and counts them.
type node struct {
	*lockertest.Locker
	index int

	mu            sync.Mutex
	before, after hook          // run around the execution of an operation, whether or not its ctx ends
	delay         time.Duration // of every operation, before it is executed
	down          error         // every operation fails with it, after delay; nothing is executed
	thaw          chan struct{} // operations wait until it is closed; nil: the node runs
	asked         map[string]int
	acquiring     int // acquires in flight
	most          int // acquires that were in flight at once
}

// set changes the node under its mutex.
func (n *node) set(change func(n *node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

func (n *node) hook(before, after hook) { n.set(func(n *node) { n.before, n.after = before, after }) }

func hookAll(nodes []*node, before, after hook) {
	for _, n := range nodes {
		n.hook(before, after)
	}
}

func (n *node) fail(err error) { n.set(func(n *node) { n.down = err }) }

func (n *node) freeze() { n.set(func(n *node) { n.thaw = make(chan struct{}) }) }

func (n *node) melt() {
	n.set(func(n *node) {
		if n.thaw != nil {
			close(n.thaw)
		}
		n.thaw = nil
	})
}

// count returns the number of calls of an operation.
func (n *node) count(what string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[what]
}

// reach waits as the test demands. If it returns an error, the operation is not executed.
func (n *node) reach(ctx context.Context, what string) error {
	n.mu.Lock()
	n.asked[what]++
	before, delay, down, thaw := n.before, n.delay, n.down, n.thaw
	n.mu.Unlock()
	if before != nil {
		if err := before(what); err != nil {
			return err
		}
	}
	var delayed <-chan time.Time
	if delay > 0 {
		delayed = time.After(delay)
	}
	for thaw != nil || delayed != nil {
		select {
		case <-thaw:
			thaw = nil
		case <-delayed:
			delayed = nil
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
		}
	}
	return down
}

// answer returns err, the outcome of an operation, unless its reply is lost.
func (n *node) answer(what string, err error) error {
	n.mu.Lock()
	after := n.after
	n.mu.Unlock()
	if after != nil {
		if lost := after(what); lost != nil {
			return lost
		}
	}
	return err
}

func (n *node) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	what := "acquire"
	if !req.Resume.IsZero() {
		what = "resume"
	}
	n.set(func(n *node) {
		n.acquiring++
		n.most = max(n.most, n.acquiring)
	})
	defer n.set(func(n *node) { n.acquiring-- })
	if !req.NoWait {
		return nil, errors.New("a node is asked once")
	}
	if err := n.reach(ctx, what); err != nil {
		return nil, &locker.OpError{Op: what, Name: req.Name, Err: err}
	}
	lock, err := n.Locker.Acquire(context.WithoutCancel(ctx), req)
	if err == nil {
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return &nodeLease{inner, n} })
	}
	if err = n.answer(what, err); err != nil {
		return nil, err
	}
	return lock, nil
}

// Inspect implements locker.Inspector. It hangs while the node is frozen.
func (n *node) Inspect(ctx context.Context, name string) (locker.State, error) {
	n.mu.Lock()
	thaw := n.thaw
	n.mu.Unlock()
	if thaw != nil {
		<-ctx.Done()
		return locker.State{}, ctx.Err()
	}
	return n.Locker.Inspect(ctx, name)
}

// state returns what is held at the node, even if it is frozen.
func (n *node) state() locker.State { return locker.Must(n.Locker.Inspect(bg, name)) }

type nodeLease struct {
	lease.Lease
	node *node
}

func (l *nodeLease) Traits() lease.Traits {
	return lease.Traits{Source: locktrace.Source{Strategy: "lockertest", Client: "memory", Address: fmt.Sprintf("mem:%d", l.node.index)}}
}

func (l *nodeLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	what := op.Kind.String()
	if err := l.node.reach(ctx, what); err != nil {
		return lease.Result{}, err
	}
	result, err := l.Lease.Do(context.WithoutCancel(ctx), op)
	if err = l.node.answer(what, err); err != nil {
		return lease.Result{}, err
	}
	return result, nil
}

// fails fails these operations.
func fails(err error, ops ...string) hook {
	return func(what string) error {
		if slices.Contains(ops, what) {
			return err
		}
		return nil
	}
}

// slow makes these operations take d longer.
func slow(d time.Duration, ops ...string) hook {
	return func(what string) error {
		if slices.Contains(ops, what) {
			sleep(d)
		}
		return nil
	}
}

// cluster is some nodes and a quorum over them.
type cluster struct {
	*redlock.Locker
	t *testing.T
	n []*node
}

func newCluster(t *testing.T, n int, cfg redlock.Config) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var lockers []locker.Locker
	for i := range n {
		c.n = append(c.n, &node{Locker: lockertest.New(), index: i, asked: map[string]int{}})
		lockers = append(lockers, c.n[i])
	}
	c.Locker = locker.Must(redlock.New(lockers, cfg))
	return c
}

// inMemory runs f in fake time on a quorum over n nodes in memory.
func inMemory(t *testing.T, n int, cfg redlock.Config, f func(t *testing.T, c *cluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, n, cfg)
		defer func() {
			for _, n := range c.n {
				n.melt()
			}
			sleep(time.Hour) // background calls end
		}()
		f(t, c)
	})
}

// eachInMemory runs f as inMemory does, for each entry of a table.
func eachInMemory[T any](t *testing.T, n int, cfg redlock.Config, tests map[string]T, f func(*testing.T, *cluster, T)) {
	t.Helper()
	t.Parallel()
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			inMemory(t, n, cfg, func(t *testing.T, c *cluster) { f(t, c, tt) })
		})
	}
}

// acquire acquires the lock, and waits for the answers that take no time.
func (c *cluster) acquire(req locker.Request) *locker.Lock {
	c.t.Helper()
	req.Name, req.TTL = cmp.Or(req.Name, name), cmp.Or(req.TTL, ttl)
	lock := locker.Must(c.Acquire(c.t.Context(), req))
	check.Must(c.t, lock.Err())
	synctest.Wait()
	return lock
}

// at returns the nodes held by owner.
func (c *cluster) at(owner string) (where []int) {
	synctest.Wait()
	for i, n := range c.n {
		if s := n.state(); s.Held && s.Owner == owner {
			where = append(where, i)
		}
	}
	return where
}

// heldBy demands that owner holds at exactly want nodes.
func (c *cluster) heldBy(owner string, want int, when string) {
	c.t.Helper()
	if at := c.at(owner); len(at) != want {
		c.t.Errorf("%s: %q holds at the nodes %v, want %d of them", when, owner, at, want)
	}
}

// free demands that no node is held.
func (c *cluster) free(when string) {
	c.t.Helper()
	synctest.Wait()
	for i, n := range c.n {
		if s := n.state(); s.Held {
			c.t.Errorf("%s: node %d is held by %q for %v, want it free", when, i, s.Owner, s.Left)
		}
	}
}

// noneIs demands that no node holds in mode.
func (c *cluster) noneIs(mode locker.Mode) {
	c.t.Helper()
	synctest.Wait()
	for i, n := range c.n {
		if got := n.state().Mode; got == mode {
			c.t.Errorf("node %d is %v", i, got)
		}
	}
}

// excludes demands that nobody else can acquire the lock, unless held is lost.
func (c *cluster) excludes(held *locker.Lock, when string) {
	c.t.Helper()
	if held.Err() != nil {
		return
	}
	other, err := c.Acquire(c.t.Context(), locker.Request{Name: name, TTL: time.Minute, Owner: "other"})
	if err == nil && held.Err() == nil {
		c.t.Errorf("%s: two hold at once: the first has %v left and is at nodes %v, mode %v; the other is at %v", when,
			time.Until(held.Deadline()), c.at("me"), held.Mode(), c.at("other"))
	}
	if err == nil {
		_ = other.Release(bg)
	}
}

// mint sets the node's counter to the value to.
func mint(l locker.Locker, to int) error {
	for range to {
		lock, err := l.Acquire(bg, locker.Request{Name: name, Fenced: true})
		if err != nil {
			return err
		}
		if err := lock.Release(bg); err != nil {
			return err
		}
	}
	return nil
}

// dice are random numbers for one purpose: they do not depend on the order of others' draws.
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

var match, matchNot, only = check.Is, check.IsNot, check.Only

// succeeds demands that an operation succeeded, and waits for background calls that take no time.
func succeeds(t *testing.T, err error) {
	t.Helper()
	match(t, err)
	synctest.Wait()
}

// took demands that exactly want has passed since start.
func took(t *testing.T, start time.Time, want time.Duration) {
	t.Helper()
	check.Took(t, "it", start, want)
}

func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time

package redlock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
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

// errDown is a transport error.
var errDown = errors.New("connection refused")

// node is a node in memory that does what a test tells it to. Its calls take time and fail as the
// plan says.
type node struct {
	*lockertest.Locker
	index int

	mu     sync.Mutex
	delay  time.Duration // of every call: it is executed and answered that much later
	down   error         // every call fails with it, after delay; nothing is executed
	thaw   chan struct{} // calls wait until it is closed, then are executed; nil: the node runs
	plain  bool          // knows no OpUndo
	early  bool          // leases count from the asking, as in a strategy over a server
	silent bool          // Inspect answers nothing
	calls  map[lease.OpKind]int
	asked  int   // acquires
	top    int64 // the highest token that it minted or was raised to
	giving int   // quiet ends that were executed
	woken  int   // ends that wake
	max    int   // acquires under way at once
	now    int
}

func newNode(i int) *node {
	return &node{Locker: lockertest.New(), index: i, calls: map[lease.OpKind]int{}}
}

// set changes the node while nobody looks.
func (n *node) set(change func(n *node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

func setAll(nodes []*node, change func(n *node)) {
	for _, n := range nodes {
		n.set(change)
	}
}

func (n *node) freeze() { n.set(func(n *node) { n.thaw = make(chan struct{}) }) }

func (n *node) melt() {
	n.set(func(n *node) {
		close(n.thaw)
		n.thaw = nil
	})
}

// pass waits as the plan says. An error means: not executed, or nobody knows.
func (n *node) pass(ctx context.Context) error {
	n.mu.Lock()
	delay, down, thaw := n.delay, n.down, n.thaw
	n.mu.Unlock()
	if thaw != nil {
		select {
		case <-thaw:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
		}
	}
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
		}
	}
	return down
}

func (n *node) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	n.set(func(n *node) {
		n.asked++
		n.now++
		n.max = max(n.max, n.now)
	})
	defer n.set(func(n *node) { n.now-- })
	if !req.NoWait {
		return nil, errors.New("a node is asked once")
	}
	start := time.Now()
	if err := n.pass(ctx); err != nil {
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: err}
	}
	if late := time.Since(start).Truncate(ms); n.early && late > 0 {
		req.TTL -= late
	}
	lock, err := n.Locker.Acquire(ctx, req)
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		held.Channel = driver.NewChannel(nobody, fmt.Sprintf("wake:%d", n.index))
	}
	if err == nil {
		n.set(func(n *node) { n.top = max(n.top, lock.Fence()) })
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return &nodeLease{inner, n} })
	}
	return lock, err
}

// Inspect implements locker.Inspector.
func (n *node) Inspect(ctx context.Context, name string) (locker.State, error) {
	n.mu.Lock()
	silent := n.silent
	n.mu.Unlock()
	if silent {
		<-ctx.Done()
		return locker.State{}, ctx.Err()
	}
	return n.Locker.Inspect(ctx, name)
}

type nodeLease struct {
	lease.Lease
	node *node
}

func (l *nodeLease) Source() locktrace.Source {
	return locktrace.Source{Strategy: "lockertest", Client: "memory", Address: fmt.Sprintf("mem:%d", l.node.index)}
}

func (l *nodeLease) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if op.Kind == lease.OpUndo && l.node.plain {
		return lease.Term{}, errors.ErrUnsupported
	}
	l.node.set(func(n *node) { n.calls[op.Kind]++ })
	if err := l.node.pass(ctx); err != nil {
		return lease.Term{}, err
	}
	term, err := l.Lease.Do(ctx, op)
	if err == nil {
		l.node.set(func(n *node) {
			switch op.Kind {
			case lease.OpRelease:
				n.woken++
			case lease.OpUndo:
				n.giving++
			case lease.OpRaiseFence:
				n.top = max(n.top, term.Fence)
			}
		})
	}
	return term, err
}

// held tells who holds the name at the node.
func (n *node) held() (owner string, held bool) {
	s, err := n.Inspect(context.Background(), name)
	if err != nil {
		panic(err)
	}
	return s.Owner, s.Held
}

// nobody is a driver whose channels have names only.
var nobody = &fakeDriver{}

type fakeDriver struct{ driver.Driver }

// cluster is some nodes and a quorum over them.
type cluster struct {
	*redlock.Locker
	t     *testing.T
	nodes []*node
}

func newCluster(t *testing.T, n int, cfg redlock.Config) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var lockers []locker.Locker
	for i := range n {
		c.nodes = append(c.nodes, newNode(i))
		lockers = append(lockers, c.nodes[i])
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
		f(t, c)
		for _, n := range c.nodes {
			if n.thaw != nil {
				n.melt()
			}
		}
		sleep(time.Hour) // what is under way ends
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

func (c *cluster) acquire(req locker.Request) *locker.Lock {
	c.t.Helper()
	req.Name, req.TTL = cmp.Or(req.Name, name), cmp.Or(req.TTL, ttl)
	lock := locker.Must(c.Acquire(c.t.Context(), req))
	check.Must(c.t, lock.Err())
	return lock
}

// holders is at how many nodes each owner holds.
func (c *cluster) holders() map[string]int {
	all := map[string]int{}
	for _, n := range c.nodes {
		if owner, held := n.held(); held {
			all[owner]++
		}
	}
	return all
}

// free demands that nothing is held anywhere.
func (c *cluster) free(when string) {
	c.t.Helper()
	synctest.Wait()
	if all := c.holders(); len(all) > 0 {
		c.t.Errorf("%s: %v hold at so many nodes, want none", when, all)
	}
}

// heldBy demands that owner holds at exactly so many nodes.
func (c *cluster) heldBy(owner string, want int, when string) {
	c.t.Helper()
	synctest.Wait()
	if got := c.holders()[owner]; got != want {
		c.t.Errorf("%s: %q holds at %d nodes, want %d: %v", when, owner, got, want, c.holders())
	}
}

var match, matchNot, only = check.Is, check.IsNot, check.Only

// succeeds demands that an operation succeeded, and waits for what goes on behind it without time
// passing.
func succeeds(t *testing.T, err error) {
	t.Helper()
	match(t, err)
	synctest.Wait()
}

// wantError demands that err is not nil.
func wantError(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Fatal(what + " has no error")
	}
}

// took demands that exactly want has passed since start.
func took(t *testing.T, start time.Time, want time.Duration) {
	t.Helper()
	check.Equal(t, "time that it took", time.Since(start), want)
}

func tookAtMost(t *testing.T, start time.Time, most time.Duration) {
	t.Helper()
	check.AtMost(t, "time that it took", time.Since(start), most)
}

func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time

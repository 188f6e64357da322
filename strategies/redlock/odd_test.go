package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// odd is a Locker that returns each lock as change returns it.
type odd struct {
	*lockertest.Locker
	change func(*locker.Lock) *locker.Lock
}

func (o odd) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := o.Locker.Acquire(ctx, req)
	if err != nil {
		return nil, err
	}
	return o.change(lock), nil
}

// A lock that has ended or has another mode, or the zero Lock, does not count toward the quorum.
func TestOddLocksDoNotCount(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(*locker.Lock) *locker.Lock{
		"lost":     func(l *locker.Lock) *locker.Lock { l.Hold().MarkLost(errDown); return l },
		"released": func(l *locker.Lock) *locker.Lock { _ = l.Release(bg); return l },
		"zero":     func(*locker.Lock) *locker.Lock { return &locker.Lock{} },
		"shared":   func(l *locker.Lock) *locker.Lock { _ = l.Downgrade(bg); return l },
	}, func(t *testing.T, change func(*locker.Lock) *locker.Lock) {
		var lockers []locker.Locker
		for range 3 {
			lockers = append(lockers, odd{lockertest.New(), change})
		}
		lock, err := locker.Must(redlock.New(lockers, redlock.Config{})).Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
		if err == nil {
			t.Errorf("an exclusive lock, until %v, of three odd ones", lock.Deadline())
		}
	})
}

// oddLease is a Lease that succeeds at every operation, or panics.
type oddLease struct{ panics bool }

func (l oddLease) Do(_ context.Context, op lease.Op) (lease.Term, error) {
	if l.panics {
		panic("a lease's own")
	}
	return lease.Term{Fence: op.Fence, Deadline: time.Now().Add(ttl)}, nil
}

// A fault of a node's own code is a failure of that node. Nobody else could recover a panic in a
// goroutine of redlock.
func TestFaultsOfNodesAreErrors(t *testing.T) {
	t.Parallel()
	type test struct {
		lease  lease.Lease
		fence  int64
		panics bool
		says   string
	}
	check.Each(t, map[string]test{
		"negative fence":    {lease: oddLease{}, fence: -1, says: "no fencing token"},
		"no lease":          {says: "without a Lease"},
		"its Locker panics": {panics: true, says: "it panicked: a node's own"},
		"its Lease panics":  {lease: oddLease{panics: true}},
	}, func(t *testing.T, tt test) {
		node := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if tt.panics {
				panic("a node's own")
			}
			return locker.NewLock(ctx, lease.Grant{
				Name: req.Name, Token: "t", TTL: req.TTL, Deadline: time.Now().Add(req.TTL), Fence: tt.fence,
			}, tt.lease), nil
		})
		l := locker.Must(redlock.New([]locker.Locker{node, node, node}, redlock.Config{}))
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Fenced: tt.fence != 0})
		if tt.says == "" {
			match(t, err)
			for _, op := range []func(context.Context) error{lock.Downgrade, lock.Release} {
				if err := op(t.Context()); err == nil || !strings.Contains(err.Error(), "it panicked: a lease's own") {
					t.Errorf("an operation: %v, want what its Lease panicked with", err)
				}
			}
			return
		}
		if _, found := errors.AsType[*redlock.NodeError](err); !found || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("acquire: %v, want an error of the nodes that says %q", err, tt.says)
		}
	})
}

// A node that answers nothing is not asked without end: a busy caller would pile up calls.
func TestHungNodeIsNotAskedWithoutEnd(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: 100 * ms}, func(t *testing.T, c *cluster) {
		hung := c.nodes[1]
		hung.freeze()
		for range 500 {
			match(t, c.acquire(locker.Request{}).Release(t.Context()))
			check.Advance(10 * ms)
		}
		check.AtMost(t, "acquires that hang at once", hung.max, 30)
		match(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name}))) // it does without
		hung.melt()
		sleep(ttl)
		c.free("after the node came back")
		asked := hung.asked
		match(t, c.acquire(locker.Request{}).Release(t.Context()))
		synctest.Wait()
		check.Equal(t, "acquires at the node that is back", hung.asked, asked+1)
	})
}

// All nodes were late once, as on a busy machine: their calls are still unanswered. The next
// attempts get the locks as soon as the nodes answer.
func TestNodesThatWereLateAreAsked(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: time.Second}, func(t *testing.T, c *cluster) {
		for _, n := range c.nodes {
			n.freeze()
		}
		const callers = 12
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				_, err := c.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("late", i), TTL: ttl})
				match(t, err, locker.ErrUnknownOutcome)
				sleep(ms)
				lock, err := c.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("again", i), TTL: ttl})
				if match(t, err); err == nil {
					match(t, lock.Release(t.Context()))
				}
			})
		}
		sleep(1100 * ms) // the first attempts are over
		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		_, err := c.Acquire(ctx, locker.Request{Name: "leaves", TTL: ttl})
		match(t, err, context.DeadlineExceeded)
		matchNot(t, err, locker.ErrUnknownOutcome) // nothing was sent
		for _, n := range c.nodes {
			n.set(func(n *node) {
				check.AtMost(t, "acquires under way at once", n.max, callers)
			})
			n.melt()
		}
		wg.Wait()
	})
}

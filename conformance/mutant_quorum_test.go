//realtime:ok mutants run in bubbles

package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// overNodes makes a Harness of strategies/redlock with around around its nodes.
func overNodes(around func(i int, node locker.Locker) locker.Locker) *Harness {
	return &Harness{Dial: plain, NewQuorum: func(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error) {
		flawed := make([]locker.Locker, len(nodes))
		for i, node := range nodes {
			flawed[i] = around(i, node)
		}
		return newRedlock(flawed, need, bound)
	}}
}

// overAll is overNodes with the same middleware around each node.
func overAll(around locker.Middleware) *Harness {
	return overNodes(func(_ int, node locker.Locker) locker.Locker { return around(node) })
}

// ignoring does nothing for some operations, and reports success.
func ignoring(kinds ...lease.OpKind) operates {
	return func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
		if slices.Contains(kinds, op.Kind) {
			return lease.Result{Deadline: time.Now().Add(op.TTL), Fence: op.Fence}, nil
		}
		return l.Lease.Do(ctx, op)
	}
}

// ignoringLate makes nodes ignore late operations of kinds on a hold: those after the quorum was
// reached or, if ended, after the end of its hold. Each attempt of a quorum has its own owner.
func ignoringLate(ended bool, kinds ...lease.OpKind) locker.Middleware {
	var mu sync.Mutex
	won, over := map[string]int{}, map[string]bool{}
	return acquires(func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
		lock, err := inner.Acquire(ctx, req)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		won[req.Owner]++
		late := won[req.Owner] > majority && !over[req.Owner]
		if ended {
			late = over[req.Owner]
		}
		lock.Hold().Wrap(func(l lease.Lease) lease.Lease {
			return &flawedLease{Lease: l, do: func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
				mu.Lock()
				over[req.Owner] = over[req.Owner] || op.Kind == lease.OpRelease || op.Kind == lease.OpUndo
				mu.Unlock()
				if late {
					return ignoring(kinds...)(ctx, l, op)
				}
				return l.Lease.Do(ctx, op)
			}}
		})
		return lock, nil
	})
}

func TestQuorumMutants(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	m.add("a quorum of a minority", overNodes(func(i int, node locker.Locker) locker.Locker {
		if i != 1 {
			return node
		}
		double := lockertest.New() // of one quorum alone
		return acquires(func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
			lock, err := inner.Acquire(ctx, req)
			if err != nil {
				return double.Acquire(ctx, req)
			}
			return lock, nil
		})(node)
	}), sound, "a quorum excludes another quorum", "three of five nodes down are an outage",
		"a quorum of both deployments excludes the locks of either")
	dated := aroundRedlock(func(l locker.Locker, _ []locker.Locker) locker.Locker { return redated(ownDeadline)(l) })
	m.add("a quorum that forgets the time it took", aroundRedlock(func(l locker.Locker, _ []locker.Locker) locker.Locker {
		return redated(fromReply)(l)
	}), dated, "the time that a quorum took counts", "a quorum's lease ends with its quorum-th latest")
	m.add("a quorum until its last lease ends", aroundRedlock(func(l locker.Locker, nodes []locker.Locker) locker.Locker {
		return redated(func(ctx context.Context, lock *locker.Lock) time.Time {
			latest := lock.Deadline()
			for _, node := range nodes {
				state, _ := locker.Inspect(ctx, node, lock.Name())
				if end := time.Now().Add(state.Left - lock.TTL()/100); end.After(latest) {
					latest = end
				}
			}
			return latest
		})(l)
	}), dated, "a quorum's lease ends with its quorum-th latest")
	m.add("a quorum that does not say which nodes failed", aroundRedlock(func(l locker.Locker, _ []locker.Locker) locker.Locker {
		return acquires(func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
			lock, err := inner.Acquire(ctx, req)
			if err != nil {
				err = &locker.OpError{Op: "acquire", Name: req.Name, Err: errors.New("nodes failed")}
			}
			return lock, err
		})(l)
	}), sound, "a quorum's errors name each node")
	m.add("a quorum that waits for all nodes", aroundRedlock(func(l locker.Locker, nodes []locker.Locker) locker.Locker {
		return acquires(func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
			lock, err := inner.Acquire(ctx, req)
			for _, node := range nodes {
				_, _ = locker.Inspect(ctx, node, req.Name)
			}
			return lock, err
		})(l)
	}), sound, "a hung node costs no time")
	m.add("a quorum that leaves what it had won", overAll(operating(ignoring(lease.OpUndo))), sound,
		"a losing attempt leaves no key and wakes nobody", "three of five nodes down are an outage")
	m.add("a quorum that wakes others when it loses", overAll(operating(releasing)), sound,
		"a losing attempt leaves no key and wakes nobody")
	m.add("a quorum that keeps what comes late", overAll(ignoringLate(true, lease.OpUndo, lease.OpRelease)), sound,
		"a late acquire of a quorum is undone")
	m.add("a quorum that leaves a late node its first lease", overAll(ignoringLate(false, lease.OpRenew)), sound,
		"a node that answers late holds as long as the lock")
	m.add("a quorum that its own attempts refuse", overAll(acquires(anonymous)), sound,
		"an attempt is not refused by the leftovers of the one before")
	m.add("a quorum that releases where it won at first", overAll(ignoringLate(false, lease.OpRelease)), sound,
		"a release reaches every node")
	m.add("a quorum that keeps its highest token to itself", overAll(operating(ignoring(lease.OpRaiseFence))), sound,
		"fencing tokens increase over quorums that share one node")
	m.add("a quorum that takes an outage for contention", overAll(acquires(
		func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
			ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
			defer cancel()
			lock, err := inner.Acquire(ctx, req)
			if err != nil {
				return refuse(req)
			}
			return lock, nil
		},
	)), sound, "three of five nodes down are an outage", "three of five nodes that hang are an outage")
	m.add("a quorum that one node renews", overNodes(func(i int, node locker.Locker) locker.Locker {
		if i == quorumSize-1 {
			return node
		}
		return operating(func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
			result, err := l.Lease.Do(ctx, op)
			if op.Kind == lease.OpRenew && err != nil {
				result, err = lease.Result{Deadline: time.Now().Add(op.TTL)}, nil
			}
			return result, err
		})(node)
	}), sound, "a renewal needs the quorum")
	m.add("a quorum that loses one node after the other", overNodes(func(_ int, node locker.Locker) locker.Locker {
		var asked sync.Map // owners
		return acquires(func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
			if _, again := asked.LoadOrStore(req.Owner, true); again {
				return nil, errors.New("it was asked before")
			}
			return inner.Acquire(ctx, req)
		})(node)
	}), sound, "a renewal restores a missed node")
	majorityOf := func(a algorithm) *Harness {
		h := a.harness(Capabilities{})
		h.NewQuorum = newRedlock
		return h
	}
	stealing := oneKey
	lua("if held then return {0, redis.call('PTTL', KEYS[1]), held} end", "")(&stealing)
	unkeptNodes := func(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error) {
		nodes = slices.Clone(nodes)
		for i := range nodes {
			nodes[i] = unkept{nodes[i]}
		}
		return newRedlock(nodes, need, bound)
	}
	everyNode := func(nodes []locker.Locker, _ int, bound Timeouts) (locker.Locker, error) {
		return newRedlock(nodes, len(nodes), bound)
	}
	m.add("a quorum of nodes that look at nothing", majorityOf(stealing), majorityOf(oneKey), "quorums that race exclude each other")
	m.add("a quorum that needs every node", &Harness{Dial: plain, NewQuorum: everyNode}, sound,
		"a quorum goes on with two of five nodes down")
	m.add("an attempt that Close of a node does not wait for", &Harness{Dial: plain, NewQuorum: unkeptNodes}, sound,
		"close of a node waits until a quorum's attempt is undone")
	m.convict()
}

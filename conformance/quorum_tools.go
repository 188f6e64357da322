package conformance

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

const (
	quorumSize = 5
	majority   = quorumSize/2 + 1
)

// kill kills nodes of the quorum for good.
func (t *caseT) kill(nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		t.OK(t.Server.Nodes[i].Kill(), "kill node %d", i)
	}
}

// nodeDriver makes a driver for a node of the quorum.
func (t *caseT) nodeDriver(i int) driver.Driver {
	t.Helper()
	return t.Dial(t.Server.Nodes[i].Target)
}

// node makes a Locker of one node.
func (t *caseT) node(i int) locker.Locker {
	t.Helper()
	return t.locker(t.nodeDriver(i))
}

// quorumOf makes the quorum under test over nodes; need 0 is the majority.
func (t *caseT) quorumOf(nodes []locker.Locker, need int) locker.Locker {
	t.Helper()
	newQuorum := newRedlock
	if t.h.NewQuorum != nil {
		newQuorum = t.h.NewQuorum
	}
	bound := t.timeouts()
	if !t.InFakeTime() {
		bound.Attempt /= 3 // a quorum's is three times as long, and a case awaits two of them
	}
	l, err := newQuorum(nodes, need, bound)
	t.OK(err, "Harness.NewQuorum")
	return l
}

// newRedlock is the default of Harness.NewQuorum.
func newRedlock(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error) {
	return redlock.New(nodes, redlock.Config{Quorum: need, AttemptTimeout: 3 * bound.Attempt})
}

// quorum makes the quorum under test over all nodes, each with a client of its own.
func (t *caseT) quorum() locker.Locker {
	t.Helper()
	nodes := make([]locker.Locker, quorumSize)
	for i := range nodes {
		nodes[i] = t.node(i)
	}
	return t.quorumOf(nodes, 0)
}

// quorumBehind is quorum with a proxy in front of each node.
func (t *caseT) quorumBehind() ([]*faultproxy.Proxy, locker.Locker) {
	t.Helper()
	proxies, nodes := make([]*faultproxy.Proxy, quorumSize), make([]locker.Locker, quorumSize)
	for i := range nodes {
		proxies[i], nodes[i] = t.nodeBehind(i)
	}
	return proxies, t.quorumOf(nodes, 0)
}

// nodeBehind makes a Locker of one node behind a proxy.
func (t *caseT) nodeBehind(i int) (*faultproxy.Proxy, locker.Locker) {
	t.Helper()
	target := t.Server.Nodes[i].Target
	p := t.Server.Nodes[i].Proxy(t.TB)
	target.Addrs = []string{p.Addr()}
	return p, t.locker(t.Dial(target))
}

// disconnect makes nodes unreachable behind their proxies.
func disconnect(proxies ...*faultproxy.Proxy) {
	for _, p := range proxies {
		p.Refuse()
		p.CutAll()
	}
}

// acquireSoon acquires a free lock. It tries again while a late command of a failed attempt is
// executed and undone.
func (t *caseT) acquireSoon(l locker.Locker, req locker.Request) (lock *locker.Lock) {
	t.Helper()
	t.Eventually("the lock can be acquired", func() (ok bool) {
		var err error
		if lock, err = l.Acquire(t.Ctx, req); err != nil && t.InFakeTime() {
			t.Is(err, locker.ErrNotAcquired, "Acquire")
		}
		return err == nil
	})
	t.held(lock)
	return lock
}

// acquireAndRelease acquires a free lock and releases it, and demands that no key is left.
func (t *caseT) acquireAndRelease(l locker.Locker, name string) {
	t.Helper()
	t.OK(t.acquireSoon(l, locker.Request{Name: name, TTL: long}).Release(t.Ctx), "Release")
	t.noNodeHas(name)
}

// heldByOthers acquires name on some nodes for other holders.
func (t *caseT) heldByOthers(name string, nodes ...int) (locks []*locker.Lock) {
	t.Helper()
	for _, i := range nodes {
		locks = append(locks, t.acquireSoon(t.node(i), locker.Request{Name: name, TTL: long}))
	}
	return locks
}

// waitAt has an attempt wait at nodes with a free lock: its holder there vanished without a
// release.
func (t *caseT) waitAt(name string, nodes ...int) {
	t.Helper()
	t.heldByOthers(name, nodes...)
	for _, i := range nodes {
		t.contended(t.node(i), locker.Request{Name: name})
		t.at(i, "DEL", name)
	}
}

// releaseAll releases locks.
func (t *caseT) releaseAll(locks []*locker.Lock) {
	t.Helper()
	for _, lock := range locks {
		t.OK(lock.Release(t.Ctx), "Release at a node")
	}
}

// at sends a command to a node, around the drivers.
func (t *caseT) at(i int, args ...any) any {
	t.Helper()
	reply, err := t.Server.Nodes[i].Do(t.Ctx, "", args...)
	t.OK(err, "%v at node %d", args[0], i)
	return reply
}

// leases returns the remaining TTL of name's key on each live node, the longest first.
func (t *caseT) leases(name string) (left []time.Duration) {
	t.Helper()
	for i, s := range t.Server.Nodes {
		if !s.Killed {
			left = append(left, t.lease(i, name))
		}
	}
	slices.Sort(left)
	slices.Reverse(left)
	return left
}

// lease returns the remaining TTL of name's key on a node.
func (t *caseT) lease(i int, name string) time.Duration {
	t.Helper()
	ms, _ := t.at(i, "PTTL", name).(int64)
	return time.Duration(ms) * time.Millisecond
}

// nodeHas reports whether a node has name's key.
func (t *caseT) nodeHas(i int, name string) bool {
	t.Helper()
	return t.at(i, "EXISTS", name) == int64(1)
}

// noNodeHas waits until no live node has name's key.
func (t *caseT) noNodeHas(name string) {
	t.Helper()
	t.Eventually("no node has the key", func() bool { return t.leases(name)[0] == suite.NoKey })
}

// coversQuorum demands that a lock's Deadline is not later than the expiry of its keys on a quorum.
func (t *caseT) coversQuorum(lock *locker.Lock) {
	t.Helper()
	var ends []time.Time
	for i, s := range t.Server.Nodes {
		if s.Killed {
			continue
		}
		switch left := t.lease(i, lock.Name()); left {
		case suite.NoKey:
		case suite.NeverExpires:
			t.Errorf("the key of a held lock never expires at node %d: if its holder dies, nobody gets it", i)
		default:
			ends = append(ends, time.Now().Add(left+time.Millisecond)) // rounded down by the server
		}
	}
	if len(ends) < majority {
		t.Fatalf("%d nodes have the key of a held lock, fewer than a quorum", len(ends))
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	switch end := ends[majority-1]; {
	case lock.Deadline().IsZero():
		t.Errorf("a lock whose keys expire has no Deadline")
	case lock.Deadline().After(end):
		t.Errorf("the Deadline is %v after the end of the lease at a quorum of nodes", lock.Deadline().Sub(end))
	}
}

// onAllNodes renews a lock until all nodes hold it, including late ones.
func (t *caseT) onAllNodes(lock *locker.Lock) {
	t.Helper()
	ttl := lock.TTL() + long
	t.Eventually("all nodes take part in the hold", func() bool {
		return lock.Renew(t.Ctx, ttl) == nil && t.leases(lock.Name())[quorumSize-1] > lock.TTL()
	})
}

// contendedSoon is contended while nodes are down: a single attempt may not reach enough nodes to
// find the other holder.
func (t *caseT) contendedSoon(l locker.Locker, req locker.Request) {
	t.Helper()
	t.Eventually("another holder is found", func() bool {
		lock, err := l.Acquire(t.Ctx, req)
		if lock != nil {
			t.Fatalf("Acquire of a lock that another holds returned a lock")
		}
		return errors.Is(err, locker.ErrNotAcquired)
	})
}

// outage demands that an acquire fails in time, and not with contention.
func (t *caseT) outage(l locker.Locker, req locker.Request, what string) {
	t.Helper()
	t.Promptly(what, func() {
		lock, err := l.Acquire(t.Ctx, req)
		if lock != nil || err == nil {
			t.Errorf("%s: Acquire returned %v, %v", what, lock, err)
		}
		t.notContention(err, what)
	})
}

// listen counts the wake-ups of name on a node.
func (t *caseT) listen(i int, name string) *listener {
	t.Helper()
	return t.listenAt(t.Server.Nodes[i].Target.Addrs[0], t.wakeChannel(name))
}

package conformance

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// The cases of a quorum over five servers.
var quorumCases = []testCase{
	{
		name: "a quorum excludes another quorum", contract: 1, on: suite.OneAddress, quorum: true,
		why: "a lock acquired on less than a majority of the nodes can be acquired twice",
		run: quorumExcludes,
	},
	{
		name: "quorums that race exclude each other", contract: 1, on: suite.OneAddress, quorum: true,
		why: "attempts at the same time may split the nodes; then none may succeed, and soon one must",
		run: quorumsRace,
	},
	{
		name: "a quorum goes on with two of five nodes down", contract: 4, on: suite.OneAddress, quorum: true,
		own: true,
		why: "surviving the loss of a minority is what the nodes are for",
		run: twoNodesDown,
	},
	{
		name: "three of five nodes down are an outage", contract: 4, on: suite.OneAddress, quorum: true, own: true,
		why: "a caller that is told that another holds the lock waits for a release that never comes",
		run: threeNodesDown,
	},
	{
		name: "three of five nodes that hang are an outage", contract: 4, on: suite.OneAddress, quorum: true,
		why: "nodes that do not answer must not block the caller for as long as they hang",
		run: threeNodesHang,
	},
	{
		name: "a quorum's errors name each node", contract: 4, on: suite.OneAddress, quorum: true,
		why: "a person who reads that a quorum was missed must know which servers to look at",
		run: errorsNameNodes,
	},
	{
		name: "a hung node costs no time", contract: 4, on: suite.OnlyMemory, quorum: true,
		why: "if each operation waits for the slowest node, one frozen server stops everybody's work",
		run: hungNodesCostNothing,
	},
	{
		name: "a losing attempt leaves no key and wakes nobody", contract: 12, on: suite.OneAddress, quorum: true,
		why: "its keys would keep others out for a TTL, and if it woke them each failed attempt would cause the next",
		run: losingLeavesNothing,
	},
	{
		name: "a quorum's lease ends with its quorum-th latest", contract: 8, on: suite.OnlyMemory, quorum: true,
		why: "from then on fewer nodes than a quorum keep others out, however long the longest lease lasts",
		run: endsWithQuorumthLatest,
	},
	{
		name: "the time that a quorum took counts", contract: 8, on: suite.OnlyMemory, quorum: true,
		why: "leases run from the sends, and a lock with little time left protects nothing",
		run: timeTakenCounts,
	},
	{
		name: "a renewal needs the quorum", contract: 9, on: suite.OneAddress, quorum: true,
		why: "a lease that only a minority renewed ends on the others, where another can acquire it",
		run: renewalNeedsQuorum,
	},
	{
		name: "a renewal restores a missed node", contract: 9, on: suite.OneAddress, quorum: true,
		why: "restarts would cost a long hold one node after the other, and in the end the lock",
		run: renewalRestores,
	},
	{
		name: "a node that answers late holds as long as the lock", contract: 9, on: suite.OneAddress, quorum: true,
		why: "with only the lease of the acquire it would end before the lock, and one more failure would cost the quorum",
		run: lateHoldsAsLong,
	},
	{
		name: "a release reaches every node", contract: 7, on: suite.OneAddress, quorum: true,
		why: "a key left on the slowest node counts against the next attempt",
		run: releaseReachesAll,
	},
	{
		name: "a late acquire of a quorum is undone", contract: 5, on: suite.OneAddress, quorum: true,
		why: "a node lock acquired after the lock has ended would block everybody and protect nobody",
		run: lateIsUndone,
	},
	{
		name: "an attempt is not refused by the leftovers of the one before", contract: 5, on: suite.OnlyMemory,
		quorum: true,
		why:    "if every node is needed, a caller that is told that another holds the lock would wait for itself",
		run:    earlierTryRefusesNone,
	},
	{
		name: "fencing tokens increase over quorums that share one node", contract: fencing, on: suite.OneAddress,
		quorum: true,
		why:    "if only the node that minted the highest token knew it, a quorum without that node would get a lower one",
		run:    fencesIncreaseOverQuorums,
	},
	{
		name: "resume takes a quorum's hold over", contract: 11, on: suite.OneAddress, quorum: true,
		why: "a handle must name the hold on each node, or some nodes would have two Locks of one hold",
		run: resumeOfQuorum,
	},
	{
		name: "a quorum of both deployments excludes the locks of either", contract: 1, on: suite.OneAddress,
		quorum: true,
		why:    "this is how to move from one server to another while old and new programs run",
		run:    allOfTwo,
	},
}

func quorumExcludes(t *caseT) {
	a, b, name := t.quorum(), t.quorum(), t.Key()
	req := locker.Request{Name: name, TTL: long}
	lock := t.acquire(a, req)
	t.coversQuorum(lock)
	t.contended(b, req)
	t.held(lock)
	t.OK(lock.Release(t.Ctx), "Release")
	t.noNodeHas(name)

	others := t.heldByOthers(name, 0, 1)
	lock = t.acquireSoon(a, req)
	t.contended(b, req)
	t.OK(lock.Release(t.Ctx), "Release of three nodes")
	others = append(others, t.heldByOthers(name, 2)...)
	t.contended(a, req)
	t.contended(b, req)
	t.releaseAll(others)
	t.acquireAndRelease(b, name)
}

func quorumsRace(t *caseT) {
	const lockers, rounds = 3, 4
	var inside atomic.Int32
	name, results := t.Key(), make([]<-chan error, lockers)
	for i := range results {
		l := t.waiting(t.quorum(), retry.Config{})
		results[i] = suite.Background(func() error {
			for range rounds {
				lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long})
				if err != nil {
					return err
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold at once", n)
				}
				err = lock.Renew(t.Ctx, 0) // gives the others time to enter by mistake
				inside.Add(-1)
				if err := errors.Join(err, lock.Release(t.Ctx)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, result := range results {
		t.OK(t.Result(result, "a quorum among others"), "a quorum among others")
	}
	t.noNodeHas(name)
}

func twoNodesDown(t *caseT) {
	a, b := t.quorum(), t.quorum()
	req := locker.Request{Name: t.Key(), TTL: long}
	lock := t.acquire(a, req)
	t.onAllNodes(lock)
	t.kill(0, 3)
	for _, fenced := range []bool{false, true} {
		t.OK(lock.Renew(t.Ctx, 0), "Renew without two of five nodes")
		t.held(lock)
		t.coversQuorum(lock)
		t.contendedSoon(b, req)
		t.OK(lock.Release(t.Ctx), "Release without two of five nodes")
		t.noNodeHas(req.Name)
		req.Fenced = fenced
		lock = t.acquireSoon(b, req)
		a, b = b, a
	}
	t.OK(lock.Release(t.Ctx), "Release without two of five nodes")
	t.noNodeHas(req.Name)
}

func threeNodesDown(t *caseT) {
	a, b := t.quorum(), t.quorum()
	held := locker.Request{Name: t.Key(), TTL: long}
	lock := t.acquire(a, held)
	t.onAllNodes(lock)
	t.kill(1, 2, 4)
	for _, fenced := range []bool{false, true} {
		free := locker.Request{Name: t.Key(), TTL: long, Fenced: fenced}
		t.outage(a, free, "Acquire of a free lock with three of five nodes down")
		t.noNodeHas(free.Name)
	}
	t.outage(b, held, "Acquire of a held lock with three of five nodes down")
	before := lock.Deadline()
	t.Promptly("Renew with three of five nodes down", func() {
		if err := lock.Renew(t.Ctx, 3*long); err == nil {
			t.Errorf("Renew with three of five nodes down succeeded")
		}
	})
	if lock.Deadline().After(before) {
		t.Errorf("a renewal that failed moved the Deadline from %v to %v", before, lock.Deadline())
	}
	t.Promptly("Release with three of five nodes down", func() { _ = lock.Release(t.Ctx) })
	t.noNodeHas(held.Name) // on the remaining nodes
}

func threeNodesHang(t *caseT) {
	proxies, l := t.quorumBehind()
	for _, p := range proxies[2:] {
		p.Freeze()
	}
	req := locker.Request{Name: t.Key(), TTL: long}
	t.outage(l, req, "Acquire with three of five nodes hung")
	for _, p := range proxies[2:] {
		p.Thaw()
	}
	t.acquireAndRelease(l, req.Name)
}

func errorsNameNodes(t *caseT) {
	proxies, l := t.quorumBehind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	t.onAllNodes(lock)
	down := []int{1, 2, 4}
	for _, i := range down {
		disconnect(proxies[i])
	}
	_, acquired := l.Acquire(t.Ctx, locker.Request{Name: t.Key(), TTL: long, NoWait: true})
	renewed := lock.Renew(t.Ctx, 0)
	released := lock.Release(t.Ctx)
	for op, err := range map[string]error{"acquire": acquired, "renew": renewed, "release": released} {
		if outer, ok := err.(*locker.OpError); !ok || outer.Op != op { //nolint:errorlint // the outermost
			t.Errorf("%s with three of five nodes down: %v, want a *locker.OpError of it", op, err)
			continue
		}
		for _, i := range down {
			if !strings.Contains(err.Error(), fmt.Sprint("node ", i)) &&
				!strings.Contains(err.Error(), proxies[i].Addr()) {
				t.Errorf("%s with three of five nodes down: %v, want it to name node %d or %s", op, err, i,
					proxies[i].Addr())
			}
		}
	}
}

func hungNodesCostNothing(t *caseT) {
	proxies, l := t.quorumBehind()
	proxies[1].Freeze()
	proxies[2].Freeze()
	name := t.Key()
	for what, fenced := range map[string]bool{"Acquire": false, "fenced Acquire": true} {
		var lock *locker.Lock
		for _, step := range []struct {
			what string
			call func() error
		}{
			{what, func() (err error) {
				lock, err = l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long, Fenced: fenced})
				return err
			}},
			{"Renew", func() error { return lock.Renew(t.Ctx, 0) }},
			{"Release", func() error { return lock.Release(t.Ctx) }},
		} {
			began := time.Now()
			t.OK(step.call(), "%s with two of five nodes hung", step.what)
			if took := time.Since(began); took > 10*latency {
				t.Errorf("%s with two of five nodes hung took %v", step.what, took)
			}
		}
	}
	proxies[1].Thaw()
	proxies[2].Thaw()
	t.noNodeHas(name)
}

func losingLeavesNothing(t *caseT) {
	proxies, l := t.quorumBehind()
	name := t.Key()
	others := t.heldByOthers(name, 0, 1, 2)
	listeners := []*listener{t.listen(3, name), t.listen(4, name)}
	for _, fenced := range []bool{false, true} {
		t.waitAt(name, 3, 4)
		var won []<-chan struct{}
		for _, p := range proxies[3:] {
			won = append(won, p.Add(faultproxy.Rule{Match: faultproxy.Contains(name)}).Executed())
		}
		t.contended(l, locker.Request{Name: name, TTL: long, Fenced: fenced})
		for _, executed := range won {
			t.Event(executed, "a node gives the lock")
		}
		t.Eventually("the losing attempt leaves nothing",
			func() bool { return !t.nodeHas(3, name) && !t.nodeHas(4, name) })
	}
	for _, sub := range listeners {
		if n := sub.count(); n != 0 {
			t.Errorf("attempts that lost woke others %d times at %s", n, sub.addr)
		}
	}
	t.releaseAll(others)
	lock := t.acquireSoon(l, locker.Request{Name: name, TTL: long})
	t.onAllNodes(lock)
	for _, i := range []int{3, 4} {
		t.contended(t.node(i), locker.Request{Name: name})
	}
	t.OK(lock.Release(t.Ctx), "Release")
	for _, sub := range listeners {
		t.Eventually("a release is published at every node", func() bool { return sub.count() > 0 })
	}
}

func resumeOfQuorum(t *caseT) {
	a, b := t.quorum(), t.quorum()
	for _, fenced := range []bool{false, true} {
		req := locker.Request{Name: t.Key(), TTL: long, Owner: "first", Fenced: fenced}
		old := t.acquire(a, req)
		t.onAllNodes(old)
		h, err := locker.ParseHandle(old.Handle().Encode())
		t.OK(err, "ParseHandle of an encoded Handle")
		t.at(2, "DEL", req.Name)
		lock, err := locker.Resume(t.Ctx, b, h)
		t.OK(err, "Resume")
		t.held(lock)
		t.coversQuorum(lock)
		if lock.Owner() != "first" || lock.TTL() != long || lock.Name() != req.Name {
			t.Errorf("the resumed lock reports %v, TTL %v; want the owner and the TTL of the first", lock, lock.TTL())
		}
		if (lock.Fence() > old.Fence()) != fenced {
			t.Errorf("the fencing token was %d and is %d after Resume; fenced is %v", old.Fence(), lock.Fence(), fenced)
		}
		t.Is(old.Renew(t.Ctx, 0), locker.ErrLost, "Renew of the Lock that was taken over")
		t.lost(old)
		t.Is(old.Release(t.Ctx), locker.ErrLost, "Release of the Lock that was taken over")
		t.held(lock)
		t.contended(a, req)
		t.OK(lock.Renew(t.Ctx, 0), "Renew of the resumed Lock")
		t.OK(lock.Release(t.Ctx), "Release of the resumed Lock")
		t.noNodeHas(req.Name)
		_, err = locker.Resume(t.Ctx, a, h)
		t.Is(err, locker.ErrNotHeld, "Resume of a lost hold")
	}
}

func allOfTwo(t *caseT) {
	before, after := t.node(0), t.node(1)
	both := t.quorumOf([]locker.Locker{t.node(0), t.node(1)}, 2)
	req := locker.Request{Name: t.Key(), TTL: long}
	for _, either := range []locker.Locker{before, after} {
		lock := t.acquireSoon(both, req)
		t.contended(before, req)
		t.contended(after, req)
		t.OK(lock.Release(t.Ctx), "Release at both")
		t.noNodeHas(req.Name)
		lock = t.acquireSoon(either, req)
		t.contended(both, req)
		t.OK(lock.Release(t.Ctx), "Release at one")
		t.noNodeHas(req.Name)
	}
}

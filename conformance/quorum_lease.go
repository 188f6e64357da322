package conformance

import (
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
)

func endsWithQuorumthLatest(t *caseT) {
	const ttl, later = 5 * time.Second, 250 * time.Millisecond // more than the drift of ttl
	proxies, l := t.quorumBehind()
	req := locker.Request{Name: t.Key(), TTL: ttl}
	proxies[3].Freeze()
	proxies[4].Freeze()
	trap := proxies[2].Fail(req.Name, faultproxy.StallRequest)
	var early []*faultproxy.Trap
	for _, p := range proxies[:2] {
		early = append(early, p.Add(faultproxy.Rule{Match: faultproxy.Contains(req.Name)}))
	}
	var lock *locker.Lock
	acquired := suite.Background(func() (err error) {
		lock, err = l.Acquire(t.Ctx, req)
		return err
	})
	t.Event(trap.Hit(), "the request is held back")
	for _, first := range early {
		t.Event(first.Executed(), "the others have executed it")
	}
	t.Pause(later)
	proxies[2].CutAll() // the command never arrives: it is resent, and the node's lease begins later
	t.OK(t.Result(acquired, "Acquire"), "Acquire with a node that was asked twice")
	t.held(lock)
	t.coversQuorum(lock)
	proxies[3].Thaw()
	proxies[4].Thaw()
	t.OK(lock.Release(t.Ctx), "Release")
	t.noNodeHas(req.Name)
}

func timeTakenCounts(t *caseT) {
	const ttl = attemptTimeout * 8 / 10 // the slow replies arrive within an attempt
	for _, slow := range []struct {
		ttl, delay time.Duration
		wins       bool
	}{
		{10 * ttl, ttl / 2, true},
		{ttl, ttl * 95 / 100, false}, // there is too little left
		{ttl, ttl * 11 / 10, false},  // nothing is left, on any node
	} {
		proxies, l := t.quorumBehind()
		req := locker.Request{Name: t.Key(), TTL: slow.ttl}
		for _, p := range proxies[2:] {
			p.Add(faultproxy.Rule{Match: faultproxy.Contains(req.Name), Fault: faultproxy.Delay, By: slow.delay})
		}
		lock, err := l.Acquire(t.Ctx, req)
		if slow.wins {
			t.OK(err, "Acquire with slow nodes")
			t.coversQuorum(lock)
			t.OK(lock.Release(t.Ctx), "Release")
			t.noNodeHas(req.Name)
			continue
		}
		if lock != nil || err == nil {
			t.Fatalf("Acquire that took %v of a TTL of %v returned %v, %v", slow.delay, slow.ttl, lock, err)
		}
		t.notContention(err, "an attempt that took too long")
		for _, p := range proxies {
			t.Eventually("it is undone", func() bool { return p.Sent(req.Name) > 1 })
		}
		t.noNodeHas(req.Name)
	}
}

func renewalNeedsQuorum(t *caseT) {
	proxies, l := t.quorumBehind()
	req := locker.Request{Name: t.Key(), TTL: long}
	lock := t.acquire(l, req)
	t.onAllNodes(lock)
	before := lock.Deadline()
	disconnect(proxies[:majority]...)
	t.Promptly("Renew with three of five nodes unreachable", func() {
		err := lock.Renew(t.Ctx, 3*long)
		if err == nil {
			t.Errorf("Renew with three of five nodes unreachable succeeded")
		}
		t.isNot(err, locker.ErrNotHeld, "Renew with three of five nodes unreachable")
	})
	t.held(lock)
	if lock.Deadline().After(before) {
		t.Errorf("a renewal that failed moved the Deadline from %v to %v", before, lock.Deadline())
	}
	t.coversQuorum(lock)
	for _, p := range proxies[:majority] {
		t.OK(p.Accept(), "Accept")
	}
	t.Eventually("a renewal with all nodes back", func() bool { return lock.Renew(t.Ctx, 0) == nil })
	t.coversQuorum(lock)

	t.Eventually("Renew reports that three of five nodes do not hold it any more", func() bool {
		for i := range majority { // again, if a late reply restored one
			t.at(i, "DEL", req.Name)
		}
		return errors.Is(lock.Renew(t.Ctx, 0), locker.ErrLost)
	})
	t.lost(lock)
	t.Is(lock.Release(t.Ctx), locker.ErrLost, "Release of a lost lock")
	t.noNodeHas(req.Name)
}

func renewalRestores(t *caseT) {
	for _, fenced := range []bool{false, true} {
		a, b := t.quorum(), t.quorum()
		req := locker.Request{Name: t.Key(), TTL: long, Fenced: fenced}
		lock := t.acquire(a, req)
		for missed := range quorumSize { // one after the other: without restoring, the third is one too many
			t.onAllNodes(lock)
			t.at(missed, "DEL", req.Name)
			t.Eventually("a renewal restores the node", func() bool {
				t.OK(lock.Renew(t.Ctx, 0), "Renew without node %d", missed)
				return t.nodeHas(missed, req.Name)
			})
			t.held(lock)
		}
		t.coversQuorum(lock)
		t.contended(b, req)
		t.OK(lock.Release(t.Ctx), "Release")
		t.noNodeHas(req.Name)
	}
}

func lateHoldsAsLong(t *caseT) {
	proxies, l := t.quorumBehind()
	req := locker.Request{Name: t.Key(), TTL: long}
	late := proxies[4].Fail(req.Name, faultproxy.Stall)
	lock := t.acquire(l, req)
	t.Event(late.Hit(), "the last node's answer is held back")
	t.OK(lock.Renew(t.Ctx, 3*long), "Renew without the last node")
	late.Release()
	t.Eventually("the last node holds as long as the lock", func() bool { return t.lease(4, req.Name) > 2*long })
	t.held(lock)
	t.OK(lock.Release(t.Ctx), "Release")
	t.noNodeHas(req.Name)
}

func releaseReachesAll(t *caseT) {
	proxies, l := t.quorumBehind()
	req := locker.Request{Name: t.Key(), TTL: long}
	trap := proxies[4].Fail(req.Name, faultproxy.Stall)
	lock := t.acquire(l, req)
	t.Event(trap.Hit(), "the last node's answer is held back")
	trap.Release()
	t.onAllNodes(lock)
	t.OK(lock.Release(t.Ctx), "Release")
	t.acquireAndRelease(l, req.Name)
}

func lateIsUndone(t *caseT) {
	for _, wins := range []bool{true, false} {
		proxies, l := t.quorumBehind()
		req := locker.Request{Name: t.Key(), TTL: long}
		var others []*locker.Lock
		if !wins {
			others = t.heldByOthers(req.Name, 0, 1, 2)
		}
		late := proxies[4].Fail(req.Name, faultproxy.StallRequest)
		if wins {
			lock := t.acquire(l, req)
			t.Event(late.Hit(), "the last node is asked")
			t.OK(lock.Release(t.Ctx), "Release")
		} else {
			t.contended(l, req)
			t.Event(late.Hit(), "the last node is asked")
		}
		late.Release()
		t.Event(late.Executed(), "the request is executed late")
		t.Eventually("the late acquire is undone",
			func() bool { return !t.nodeHas(3, req.Name) && !t.nodeHas(4, req.Name) })
		t.releaseAll(others)
		t.acquireAndRelease(l, req.Name)
	}
}

func earlierTryRefusesNone(t *caseT) {
	req := locker.Request{Name: t.Key(), TTL: long}
	proxy, behind := t.nodeBehind(1)
	both := t.quorumOf([]locker.Locker{t.node(0), behind}, 2)
	others := t.heldByOthers(req.Name, 0)
	late := proxy.Fail(req.Name, faultproxy.Stall)
	t.contended(both, req)
	t.Event(late.Hit(), "the other node has given the lock, and its answer is held back")
	t.releaseAll(others)
	var lock *locker.Lock
	acquired := suite.Background(func() (err error) {
		lock, err = both.Acquire(t.Ctx, req)
		return err
	})
	t.Pause(attemptTimeout / 2) // the node may refuse because of the earlier attempt
	late.Release()
	t.OK(t.Result(acquired, "Acquire"), "Acquire with nothing in the way but an earlier one's")
	t.held(lock)
	t.OK(lock.Release(t.Ctx), "Release")
	t.noNodeHas(req.Name)
}

func fencesIncreaseOverQuorums(t *caseT) {
	name := t.Key()
	ahead := time.Now().Add(time.Hour).UnixMicro()
	t.at(0, "SET", t.fenceKey(name), strconv.FormatInt(ahead, 10)) // as after a fast clock
	last := ahead
	for _, down := range [][]int{{3, 4}, {0, 1}, {2, 3}, {0, 4}} {
		proxies, l := t.quorumBehind()
		for _, i := range down {
			disconnect(proxies[i])
		}
		lock := t.acquireSoon(l, locker.Request{Name: name, TTL: long, Fenced: true})
		if lock.Fence() <= last {
			t.Errorf("without the nodes %v the fencing token went from %d to %d", down, last, lock.Fence())
		}
		last = lock.Fence()
		t.OK(lock.Release(t.Ctx), "Release")
		t.noNodeHas(name)
	}
}

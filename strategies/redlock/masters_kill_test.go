package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// One and two of five are killed: nobody notices. With three it is an outage, and ends when they
// are back.
func TestKilledMasters(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	l := m.quorum(0, lenient, nil)
	other := m.quorum(1, lenient, nil)
	held := m.acquire(l, locker.Request{Name: "held", TTL: long})
	released := m.acquire(l, locker.Request{Name: "released", TTL: long})
	for i, when := range []string{"one killed", "two killed"} {
		m.kill(i)
		m.cycles(l, when)
		m.renewed(held)
		m.refused(other, locker.Request{Name: "held", TTL: long})
	}
	m.release(released)

	brief := m.acquire(l, locker.Request{Name: "brief", TTL: 4 * time.Second})
	m.renewed(brief)
	m.kill(2)
	m.outage(l, locker.Request{Name: "new", TTL: long}, 3)
	m.outage(other, locker.Request{Name: "held", TTL: long}, 3)
	before := held.Deadline()
	err := held.Renew(t.Context(), 2*long)
	if _, ok := errors.AsType[*redlock.QuorumError](err); !ok || !held.Deadline().Equal(before) || held.Err() != nil {
		t.Errorf("renew with three of five killed: %v, Err %v, Deadline moved by %v", err, held.Err(), held.Deadline().Sub(before))
	}
	m.ends(brief)

	m.restart(0, 1, 2)
	m.eventually(func() string {
		if err := held.Renew(t.Context(), 0); err != nil {
			return err.Error()
		}
		return ""
	})
	m.refused(other, locker.Request{Name: "held", TTL: long})
	m.release(held)
	m.cycles(other, "all back")
	m.nothingStays()
}

// A node that comes back with its data still has the lock, and takes part in the next renewal.
func TestRestartedWithItsData(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	l := m.quorum(1, lenient, nil)
	lock := m.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
	m.eventually(m.heldAt(name, five))
	tokens := []any{m.value(0, name), m.value(1, name)}
	m.kill(0, 1)
	m.renewed(lock) // they miss it
	m.restart(0, 1)
	for node := range 2 {
		if got := m.value(node, name); got != tokens[node] {
			t.Fatalf("node %d has %v after the restart, had %v", node, got, tokens[node])
		}
	}
	m.eventually(func() string {
		if m.left(0, name) < long || m.left(1, name) < long {
			if err := lock.Renew(t.Context(), 2*long); err != nil {
				return err.Error()
			}
			return "a renewal passes the restarted nodes by"
		}
		return ""
	})
	if m.value(0, name) != tokens[0] {
		t.Error("the lock at node 0 was taken anew, though it was there")
	}
	m.kill(2, 3) // those that came back are part of the quorum
	m.extended(lock, 3*long)
	m.release(lock)
}

// A node that missed the acquire, or comes back without its data, is restored by a renewal, and
// counts from the next.
func TestRestoredMasters(t *testing.T) {
	t.Parallel()
	for _, missed := range []bool{false, true} {
		t.Run(map[bool]string{false: "lost its data", true: "missed the acquire"}[missed], func(t *testing.T) {
			t.Parallel()
			m := startMasters(t)
			l, other := m.quorum(2, lenient, nil), m.quorum(0, lenient, nil)
			req := locker.Request{Name: name, TTL: long, Fenced: true}
			var lock *locker.Lock
			if missed {
				m.kill(0, 1)
				lock = m.acquire(l, req)
			} else {
				lock = m.acquire(l, req)
				m.eventually(m.heldAt(name, five))
				m.kill(0, 1)
			}
			for _, s := range m.servers[:2] {
				m.must(s.RestartEmpty(t.Context()))
			}
			m.eventually(func() string {
				if err := lock.Renew(t.Context(), 0); err != nil {
					return err.Error()
				}
				return m.heldAt(name, five)()
			})
			m.renewed(lock)
			m.kill(2, 3) // those that were restored are part of the quorum
			m.renewed(lock)
			m.refused(other, req)
			m.release(lock)
			if next := m.acquire(other, req); next.Fence() <= lock.Fence() {
				t.Errorf("fence %d after %d: the counters of the restored nodes were not raised", next.Fence(), lock.Fence())
			}
		})
	}
}

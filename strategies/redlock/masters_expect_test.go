package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// acquire fails the test if it gets no lock, or gets it late.
func (m *masters) acquire(l locker.Locker, req locker.Request) *locker.Lock {
	m.Helper()
	start := time.Now()
	lock, err := l.Acquire(m.Context(), req)
	if took := time.Since(start); err != nil || took > soon {
		m.Fatalf("acquire: %v after %v", err, took)
	}
	return lock
}

// acquireSoon is acquire that tries again: nodes that were just restarted, and what an attempt
// before leaves for a moment, make a bare attempt miss the quorum.
func (m *masters) acquireSoon(l locker.Locker, req locker.Request) (lock *locker.Lock) {
	m.Helper()
	m.eventually(func() (amiss string) {
		var err error
		if lock, err = l.Acquire(m.Context(), req); err != nil {
			return err.Error()
		}
		return ""
	})
	return lock
}

// refused demands that others are refused, never let in. It may be said to be an outage only where
// fewer than a quorum of the nodes have answered in time: one is slow, or was restarted and its
// client has to find out.
func (m *masters) refused(l locker.Locker, req locker.Request) {
	m.Helper()
	m.eventually(func() string {
		lock, err := l.Acquire(m.Context(), req)
		if err == nil {
			m.Fatalf("%v is had by two", lock)
		}
		return m.contended(err)
	})
}

// contended returns "" if err says that others hold. If it does not although a quorum has answered,
// the test fails.
func (m *masters) contended(err error) (amiss string) {
	m.Helper()
	if errors.Is(err, locker.ErrNotAcquired) {
		return ""
	}
	if missed, ok := errors.AsType[*redlock.QuorumError](err); !ok || missed.Done+missed.Refused >= missed.Needed {
		m.Fatalf("%v; want that others hold it", err)
	}
	return err.Error()
}

func (m *masters) release(lock *locker.Lock) {
	m.Helper()
	start := time.Now()
	if err, took := lock.Release(m.Context()), time.Since(start); err != nil || took > soon {
		m.Fatalf("release: %v after %v", err, took)
	}
}

// cycles demands that a lock can be acquired and released, again and again.
func (m *masters) cycles(l locker.Locker, when string) {
	m.Helper()
	for i := range 10 {
		req := locker.Request{Name: strings.ReplaceAll(when, " ", "-"), TTL: long, Fenced: i%2 == 0}
		start := time.Now()
		lock, err := l.Acquire(m.Context(), req)
		if err == nil {
			err = lock.Release(m.Context())
		}
		if took := time.Since(start); err != nil || took > soon {
			m.Fatalf("%s: cycle %d: %v after %v", when, i, err, took)
		}
	}
}

// outage demands that an attempt ends soon, and that what it says is that so many nodes at least
// failed.
func (m *masters) outage(l locker.Locker, req locker.Request, failed int) {
	m.Helper()
	start := time.Now()
	lock, err := l.Acquire(m.Context(), req)
	took := time.Since(start)
	missed, ok := errors.AsType[*redlock.QuorumError](err)
	if lock != nil || !ok || len(missed.Nodes) < failed || errors.Is(err, locker.ErrNotAcquired) || took > soon {
		m.Errorf("with %d of %d nodes down: %v, %v after %v; want a QuorumError of as many", failed, five, lock, err, took)
	}
}

// renewed demands that the lock's lease becomes longer.
func (m *masters) renewed(lock *locker.Lock) {
	m.Helper()
	m.extended(lock, 0)
}

// extended is renewed with a TTL of its own; 0: as acquired.
func (m *masters) extended(lock *locker.Lock, ttl time.Duration) {
	m.Helper()
	before := lock.Deadline()
	match(m.T, lock.Renew(m.Context(), ttl))
	if !lock.Deadline().After(before) {
		m.Errorf("the Deadline stays at %v", before)
	}
}

// renewedAs demands that a lock is of a mode, and can be renewed.
func (m *masters) renewedAs(lock *locker.Lock, mode locker.Mode) {
	m.Helper()
	if m.renewed(lock); lock.Mode() != mode {
		m.Errorf("%v, want %v", lock, mode)
	}
}

// keys are those of all nodes, but for the counters of fenced locks.
func (m *masters) keys() []string {
	m.Helper()
	var all []string
	for i, s := range m.servers {
		keys, ok := s.MustCommand(m, "KEYS", "*").([]any)
		if !ok {
			m.Fatal("KEYS replies no list")
		}
		for _, k := range keys {
			if k := fmt.Sprint(k); !strings.HasSuffix(k, driver.FenceSuffix) {
				all = append(all, fmt.Sprintf("%s at node %d", k, i))
			}
		}
	}
	return slices.Sorted(slices.Values(all))
}

// eventually polls until f, which says what is wrong, returns "".
func (m *masters) eventually(f func() string) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), 2*soon)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		amiss := f()
		if amiss == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			m.Fatalf("after %v still: %s", 2*soon, amiss)
		}
	}
}

// heldAt says what is wrong if a key is not at so many nodes.
func (m *masters) heldAt(key string, want int) func() string {
	return func() string {
		var n int
		for i := range m.servers {
			if m.value(i, key) != nil {
				n++
			}
		}
		if n == want {
			return ""
		}
		return fmt.Sprintf("%s is held at %d nodes, want %d", key, n, want)
	}
}

// nothingStays demands that all locks are gone soon.
func (m *masters) nothingStays() {
	m.Helper()
	m.eventually(func() string { return strings.Join(m.keys(), ", ") })
}

// ends demands that a lock is lost when its lease ends: no sooner, and not much later.
func (m *masters) ends(lock *locker.Lock) {
	m.Helper()
	select {
	case <-lock.Done():
		if early := time.Until(lock.Deadline()); early > 0 {
			m.Errorf("lost %v before its Deadline: %v", early, lock.Err())
		}
		match(m.T, lock.Err(), locker.ErrLost)
	case <-time.After(time.Until(lock.Deadline()) + soon):
		m.Errorf("%v is held beyond its Deadline", lock)
	}
}

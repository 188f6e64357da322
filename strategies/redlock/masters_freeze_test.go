package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// One and two of five are frozen: nobody waits for them, though the timeout is long.
func TestFrozenMasters(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	l := m.quorum(0, redlock.Config{AttemptTimeout: long, MinValidity: time.Second}, nil)
	held := m.acquire(l, locker.Request{Name: "held", TTL: 2 * long})
	for i, when := range []string{"one frozen", "two frozen"} {
		m.freeze(i)
		m.cycles(l, when)
		start := time.Now()
		m.renewed(held)
		if took := time.Since(start); took > soon {
			t.Errorf("%s: the renewal took %v", when, took)
		}
	}
	m.release(held)
	m.thaw(0, 1)
	m.nothingStays()
	m.cycles(l, "thawed")
	m.nothingStays()
}

// Three of five are frozen: an outage at AttemptTimeout, or when the caller leaves. Once they are
// thawed, what they still had to execute is taken back.
func TestFrozenQuorum(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	l := m.quorum(1, redlock.Config{AttemptTimeout: time.Second}, nil)
	patient := m.quorum(2, redlock.Config{AttemptTimeout: long, MinValidity: time.Second}, nil)
	brief := m.acquire(l, locker.Request{Name: "brief", TTL: 3 * time.Second})
	held := m.acquire(l, locker.Request{Name: "held", TTL: long})
	m.freeze(1, 2, 3)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			m.outage(l, locker.Request{Name: fmt.Sprintf("gave up %d", i), TTL: long, Fenced: i%2 == 0}, 3)
		})
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := patient.Acquire(ctx, locker.Request{Name: fmt.Sprintf("left %d", i), TTL: 2 * long, Fenced: i%2 == 0})
			match(t, err, context.DeadlineExceeded)
			matchNot(t, err, locker.ErrNotAcquired)
			if took := time.Since(start); took > soon {
				t.Errorf("the caller left, and it took %v", took)
			}
		})
	}
	all.Go(func() {
		start := time.Now()
		err := held.Renew(t.Context(), 0)
		if took := time.Since(start); err == nil || held.Err() != nil || took > soon {
			t.Errorf("renew: %v after %v, Err %v; want an outage", err, took, held.Err())
		}
	})
	all.Wait()
	m.ends(brief)
	m.thaw(1, 2, 3)
	m.eventually(func() string {
		if err := held.Renew(t.Context(), 0); err != nil {
			return err.Error()
		}
		return ""
	})
	m.release(held)
	m.nothingStays()
	m.cycles(l, "thawed")
	m.cycles(patient, "thawed")
	m.nothingStays()
}

package redlock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func init() { logging.Disable() } // go-redis logs every failed dial

// patience bounds the attempts and the polls of a test with real servers.
const patience = time.Minute

// masters are five servers that share nothing and keep acknowledged writes.
type masters struct {
	*testing.T
	servers []*redistest.Server
}

// quorum makes a Locker over the five, with its own clients. Their kinds differ from node to node,
// beginning with the mix-th.
func (m masters) quorum(mix int) *redlock.Locker {
	m.Helper()
	var nodes []locker.Locker
	for i, s := range m.servers {
		drv := clients.All[(mix+i)%len(clients.All)].Open(m, s.Addr())
		nodes = append(nodes, locker.Must(single.New(drv, single.Config{AttemptTimeout: patience})))
	}
	return locker.Must(redlock.New(nodes, redlock.Config{AttemptTimeout: patience}))
}

// eventually polls until f returns nil.
func (m masters) eventually(f func() error) {
	m.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			m.Fatalf("after %v still: %v", patience, err)
		}
	}
}

// onServers returns an error unless want servers have the key of the lock.
func (m masters) onServers(want int) error {
	n := 0
	for _, s := range m.servers {
		if s.MustCommand(m, "EXISTS", name) == int64(1) {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d servers have the lock, want %d", n, want)
	}
	return nil
}

// restored renews a lock until all nodes have it.
func (m masters) restored(lock *locker.Lock) {
	m.Helper()
	m.eventually(func() error { return errors.Join(lock.Renew(m.Context(), 0), m.onServers(len(m.servers))) })
}

// refused demands that the lock has another holder.
func (m masters) refused(l locker.Locker) {
	m.Helper()
	m.eventually(func() error { // the connection to a restarted node fails first
		lock, err := l.Acquire(m.Context(), locker.Request{Name: name, NoWait: true})
		if err == nil {
			m.Fatalf("%v has two holders", lock)
		}
		if errors.Is(err, locker.ErrNotAcquired) {
			return nil
		}
		return err
	})
}

// With one of five masters killed and one frozen, a lock is acquired, renewed and released. When a
// master comes back, with its data or without, it counts toward the quorum after a renewal.
func TestMasters(t *testing.T) {
	t.Parallel()
	m := masters{t, redistest.StartN(t, 5, redistest.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})}
	ours, others := m.quorum(0), m.quorum(1)
	req := locker.Request{Name: name, TTL: time.Hour, Fenced: true}
	acquire := func(l locker.Locker) *locker.Lock { return locker.Must(l.Acquire(t.Context(), req)) }

	match(t, m.servers[0].Kill())
	match(t, m.servers[1].Freeze())
	t.Cleanup(func() { _ = m.servers[1].Thaw() }) // before the clients are closed
	first := acquire(ours)
	m.refused(others)
	match(t, first.Renew(t.Context(), 0))
	match(t, first.Release(t.Context()))
	match(t, m.servers[1].Thaw())
	match(t, m.servers[0].RestartEmpty(t.Context()))
	m.eventually(func() error { return m.onServers(0) })

	second := acquire(others)
	check.AtLeast(t, "fence", second.Fence(), first.Fence()+1)
	m.restored(second) // a quorum was enough for the acquire
	match(t, errors.Join(m.servers[0].Kill(), m.servers[1].Kill()))
	match(t, m.servers[0].Restart(t.Context()))
	match(t, m.servers[1].RestartEmpty(t.Context()))
	m.restored(second)
	match(t, second.Renew(t.Context(), 0)) // node 1 counts from this one
	match(t, errors.Join(m.servers[2].Kill(), m.servers[3].Kill()))
	match(t, second.Renew(t.Context(), 0))
	m.refused(ours)
	match(t, second.Release(t.Context()))
	check.AtLeast(t, "fence, though node 1 lost its counter", acquire(ours).Fence(), second.Fence()+1)
}

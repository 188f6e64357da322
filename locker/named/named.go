package named

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// maxLost is how many lost locks are remembered until their Unlock. Beyond that the oldest is
// dropped.
const maxLost = 1024

// Mutex locks names, and keeps the lock of each name until its Unlock. It is safe for concurrent
// use. The zero Mutex is not usable; New makes one.
type Mutex struct {
	locker locker.Locker
	req    locker.Request

	mu    sync.Mutex
	names map[string]*name // names in use
	lost  []*tenure        // not unlocked yet, the oldest first
}

// name is a name in use. Mutex.mu guards users and held.
type name struct {
	turn  chan struct{} // has a value while one caller acquires, holds or releases the name
	users int           // callers waiting for the turn, or with it
	held  *tenure       // nil: nobody of this process holds it
}

// tenure is a caller's lock, held or lost.
type tenure struct {
	lock  *locker.Lock
	name  string // given to Lock; middleware may change that of the lock
	owner string // in the ctx of Lock; "" if none
}

// New returns a Mutex over l. Each lock is acquired by a copy of req with its Name set: set TTL,
// MaxWait, Fenced, Note or Owner there. The zero Request works. Use a Locker that waits and renews,
// as from holdfast.New: over a bare strategy Lock fails if another process holds the lock, and a
// lock is lost one TTL after it was acquired.
//
// It returns an error that matches locker.ErrInvalid if l is nil or a semaphore of more than one
// permit, or if req is invalid, has a Name or a Resume, or has a Mode other than Exclusive.
func New(l locker.Locker, req locker.Request) (*Mutex, error) {
	switch {
	case l == nil:
		return nil, argument.Invalid("named.New locker", "nil", "a Locker")
	case lease.TraitsOf(l).Permits > 1:
		return nil, argument.Invalid("named.New locker",
			fmt.Sprintf("a semaphore of %d permits", lease.TraitsOf(l).Permits), "a lock that one holds at a time")
	case req.Name != "":
		return nil, argument.Invalid("named.New Request.Name", fmt.Sprintf("%.40q", req.Name),
			"none; Lock is given the name")
	case req.Mode != locker.Exclusive:
		return nil, argument.Invalid("named.New Request.Mode", req.Mode.String(), "Exclusive")
	case !req.Resume.IsZero():
		return nil, argument.Invalid("named.New Request.Resume", "a Handle", "none")
	}
	valid := req
	valid.Name = "name"
	if err := valid.Validate(); err != nil {
		return nil, err
	}
	return &Mutex{locker: l, req: req, names: map[string]*name{}}, nil
}

// Lock acquires the lock of a name. If another caller of this process holds it, Lock waits for its
// Unlock, as for a sync.Mutex; then l acquires it. ctx and the MaxWait of New's Request bound the
// call, but not the hold.
//
// The errors are those of [locker.Locker]. If ctx or MaxWait ends while Lock waits for another
// caller of this process, the error matches locker.ErrNotAcquired too.
func (m *Mutex) Lock(ctx context.Context, name string) error {
	return m.acquire(ctx, name, m.req.NoWait)
}

// TryLock acquires the lock of a name if it is free, without waiting. It returns false and nil if
// another caller of this process or another process holds it. Other errors are those of Lock.
func (m *Mutex) TryLock(ctx context.Context, name string) (bool, error) {
	err := m.acquire(ctx, name, true)
	if errors.Is(err, locker.ErrNotAcquired) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock of a name. Any goroutine may call it. A cancelled ctx does not stop it.
//
// If the lock was lost, Unlock returns an error that matches locker.ErrLost, and releases no lock
// of the name acquired since. So if several callers have locked the name, one after the loss of
// another's lock, the first Unlock is taken for that of the oldest lost lock, and the last one
// releases the held lock. If ctx carries an owner ([locker.WithOwner]), Unlock leaves alone locks
// acquired with another owner in ctx.
//
// If there is no such lock, the error matches locker.ErrNotHeld. Other errors are those of
// [locker.Lock.Release].
func (m *Mutex) Unlock(ctx context.Context, name string) error {
	if ctx == nil {
		return opError("release", name, argument.NilContext("Unlock ctx"))
	}
	owner, _ := lease.OwnerFrom(ctx, name)
	m.mu.Lock()
	if t := m.takeLost(name, owner); t != nil {
		m.mu.Unlock()
		return t.lock.Release(ctx)
	}
	n := m.names[name]
	if n == nil || n.held == nil || !n.held.of(owner) {
		m.mu.Unlock()
		return opError("release", name, locker.ErrNotHeld)
	}
	lock := n.held.lock
	n.held = nil
	m.mu.Unlock()
	defer m.done(name, n)
	return lock.Release(ctx)
}

// of reports whether an Unlock whose ctx carries owner may belong to t.
func (t *tenure) of(owner string) bool {
	return t.owner == "" || owner == "" || t.owner == owner
}

// acquire waits for its turn in this process, and acquires the lock.
func (m *Mutex) acquire(ctx context.Context, name string, noWait bool) error {
	req := m.req
	req.Name, req.NoWait = name, noWait
	err := req.Validate()
	if ctx == nil {
		err = argument.NilContext("Lock ctx")
	}
	if err != nil {
		return opError("acquire", name, err)
	}
	start := time.Now()
	n, err := m.enter(ctx, req)
	if err != nil {
		return opError("acquire", name, err)
	}
	kept := false
	defer func() {
		if !kept { // also if the Locker panics
			m.done(name, n)
		}
	}()
	if req.MaxWait > 0 {
		if req.MaxWait -= time.Since(start); req.MaxWait <= 0 {
			return opError("acquire", name, locker.ErrMaxWait)
		}
	}
	lock, err := m.locker.Acquire(ctx, req)
	if err != nil {
		return err
	}
	kept = true
	m.keep(ctx, name, n, lock)
	return nil
}

// enter waits until no other caller of this process uses the name.
func (m *Mutex) enter(ctx context.Context, req locker.Request) (*name, error) {
	m.mu.Lock()
	n := m.names[req.Name]
	if n == nil {
		n = &name{turn: make(chan struct{}, 1)}
		m.names[req.Name] = n
	}
	n.users++
	m.mu.Unlock()
	err := n.wait(ctx, req)
	if err != nil {
		m.leave(req.Name, n)
	}
	return n, err
}

func (n *name) wait(ctx context.Context, req locker.Request) error {
	select {
	case n.turn <- struct{}{}:
		return nil
	default:
	}
	busy := &locker.ContentionError{Name: req.Name}
	if req.NoWait {
		return busy
	}
	bounded := ctx
	if req.MaxWait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeoutCause(ctx, req.MaxWait, locker.ErrMaxWait)
		defer cancel()
	}
	select {
	case n.turn <- struct{}{}:
		return nil
	case <-bounded.Done():
		if err := lease.ContextErr(ctx); err != nil {
			return fmt.Errorf("%w, in this process: %w", busy, err)
		}
		return fmt.Errorf("%w, in this process: %w", busy, locker.ErrMaxWait)
	}
}

// done ends the turn of a caller.
func (m *Mutex) done(name string, n *name) {
	<-n.turn
	m.leave(name, n)
}

// leave removes the name if this was its last user.
func (m *Mutex) leave(name string, n *name) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n.users--; n.users == 0 {
		delete(m.names, name)
	}
}

// keep records the lock of the caller with the turn. If the lock is lost, the turn ends.
func (m *Mutex) keep(ctx context.Context, name string, n *name, lock *locker.Lock) {
	t := &tenure{lock: lock, name: name}
	t.owner, _ = lease.OwnerFrom(ctx, name)
	m.mu.Lock()
	n.held = t
	m.mu.Unlock()
	lock.AfterDone(func(error) {
		m.mu.Lock()
		wasLost := n.held == t // else Unlock has it
		if wasLost {
			n.held = nil
			m.lost = append(m.lost, t)
			if len(m.lost) > maxLost {
				m.lost = slices.Delete(m.lost, 0, 1)
			}
		}
		m.mu.Unlock()
		if wasLost {
			m.done(name, n)
		}
	})
}

// takeLost removes and returns the oldest lost lock of a name to which an Unlock with that owner
// may belong. The mutex is held.
func (m *Mutex) takeLost(name, owner string) *tenure {
	at := slices.IndexFunc(m.lost, func(t *tenure) bool { return t.name == name && t.of(owner) })
	if at < 0 {
		return nil
	}
	t := m.lost[at]
	m.lost = slices.Delete(m.lost, at, at+1)
	return t
}

func opError(op, name string, err error) error {
	return &locker.OpError{Op: op, Name: name, Err: err}
}

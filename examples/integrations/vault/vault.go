// Package vault is an example: it gives high availability to a storage backend of Vault
// (github.com/hashicorp/vault) without locks of its own, by a Holdfast lock. Copy this file into a
// build of Vault or OpenBao with that backend, and register New there.
package vault

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/vault/sdk/physical"

	"github.com/holdfast-go/holdfast/locker"
)

// valueTimeout bounds Value. Vault calls it to find the active node.
const valueTimeout = 5 * time.Second

// Backend is a physical.HABackend: secrets are in the wrapped backend, and the lock of the active
// node is a Locker's. All nodes of a cluster use the same Redis.
//
// It does not implement physical.FencingHABackend: each write of the wrapped backend would have to
// check a token.
type Backend struct {
	physical.Backend

	locker locker.Locker
	req    locker.Request
}

var _ physical.HABackend = (*Backend)(nil)

// New returns a Backend over b. Each lock is acquired by a copy of req with Vault's Name and Note.
// req.TTL is how long the cluster has no active node after one has died: 15 s, say. Leave
// req.MaxWait zero: a standby waits for as long as another node is active.
//
// If middleware/tracing is around l, set its Config.NoLink: tracing appends its trace context to
// the Note, and Vault finds the active node by the Note alone.
//
// l waits and renews, as holdfast.New's. With its Retry.FailFast an outage of Redis is returned to
// Vault, to be logged and tried again; else Lock tries on silently.
func New(b physical.Backend, l locker.Locker, req locker.Request) *Backend {
	return &Backend{Backend: b, locker: l, req: req}
}

// HAEnabled implements physical.HABackend.
func (b *Backend) HAEnabled() bool { return true }

// LockWith implements physical.HABackend. value, the identity of the node, is the Note of the lock.
func (b *Backend) LockWith(key, value string) (physical.Lock, error) {
	req := b.req
	req.Name, req.Note = key, value
	if err := req.Validate(); err != nil {
		return nil, err
	}
	return &haLock{locker: b.locker, req: req}, nil
}

// haLock is a physical.Lock.
type haLock struct {
	locker locker.Locker
	req    locker.Request

	mu   sync.Mutex
	held *locker.Lock // from Lock to Unlock
}

// Lock implements physical.Lock: it waits until this node is the active one, and returns a channel
// that is closed when it no longer is, at the Deadline of the lock at the latest. If stop is closed
// meanwhile, it returns nil and no error.
func (l *haLock) Lock(stop <-chan struct{}) (<-chan struct{}, error) {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if held != nil {
		return nil, errors.New("the lock is held already")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stopped := errors.New("stopped")
	go func() {
		select {
		case <-stop:
			cancel(stopped)
		case <-ctx.Done():
		}
	}()
	held, err := l.locker.Acquire(ctx, l.req)
	if err != nil {
		if errors.Is(context.Cause(ctx), stopped) {
			return nil, nil
		}
		return nil, err
	}
	l.mu.Lock()
	l.held = held
	l.mu.Unlock()
	return held.Done(), nil
}

// Unlock implements physical.Lock. The error matches locker.ErrLost if the lock was lost since
// Lock.
func (l *haLock) Unlock() error {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	return held.Release(context.Background()) // of a nil Lock: ErrNotHeld
}

// Value implements physical.Lock. It returns whether any node holds the lock, and the node's value.
func (l *haLock) Value() (held bool, value string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), valueTimeout)
	defer cancel()
	state, err := locker.Inspect(ctx, l.locker, l.req.Name)
	return state.Held, state.Note, err
}

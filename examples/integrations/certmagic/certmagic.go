// Package certmagic is an example: it puts the locks of certmagic
// (github.com/caddyserver/certmagic), and so of Caddy, on Redis, while certificates stay in any
// other storage. Copy this file.
//
// Instances that share a storage obtain each certificate once, and solve the challenges of each
// other. For that certmagic needs locks that hold between hosts. Those of its FileStorage are files
// on the shared disk, which become stale by comparing the clocks of the hosts.
package certmagic

import (
	"context"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/named"
)

// Storage is a certmagic.Storage: certificates are in the one that it wraps, locks are a Locker's.
// All instances that share the certificates must use one, over the same Redis.
//
// It does not implement certmagic.LockLeaseRenewer, by which certmagic asks for a lease as long as
// the next attempt takes, up to hours. A Locker that renews keeps the lock for as long as the
// process lives, and frees it within one TTL of its death.
type Storage struct {
	certmagic.Storage // its Lock and Unlock are not used

	locks *named.Locks
}

var (
	_ certmagic.Storage   = (*Storage)(nil)
	_ certmagic.TryLocker = (*Storage)(nil)
)

// New returns a Storage over s. Each lock is acquired by a copy of req with its Name set, so req
// must not have one. l waits and renews, as that of holdfast.New.
//
// Leave req.MaxWait zero for certificates that are managed in the background, as Caddy does:
// certmagic may hold a lock for hours while a CA is out of service, and where Lock returns an error
// it does not try again soon. The ctx of a Lock ends when the configuration is unloaded.
func New(s certmagic.Storage, l locker.Locker, req locker.Request) (*Storage, error) {
	locks, err := named.New(l, req)
	if err != nil {
		return nil, err
	}
	return &Storage{Storage: s, locks: locks}, nil
}

// Lock implements certmagic.Locker.
func (s *Storage) Lock(ctx context.Context, name string) error {
	return s.locks.Lock(ctx, name)
}

// TryLock implements certmagic.TryLocker. certmagic uses it to ask a CA once, and not once per
// instance, when to renew.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	return s.locks.TryLock(ctx, name)
}

// Unlock implements certmagic.Locker. It returns an error that matches locker.ErrLost if the lock
// was lost since Lock, which certmagic logs: another instance may have obtained the certificate
// too.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	return s.locks.Unlock(ctx, name)
}

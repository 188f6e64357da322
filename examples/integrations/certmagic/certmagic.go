// Package certmagic is an example: it puts the locks of certmagic
// (github.com/caddyserver/certmagic), and so of Caddy, on Redis, while certificates stay in any
// other storage. Copy this file.
//
// Instances with a common storage obtain each certificate once, and solve the challenges of each
// other. For this certmagic needs locks between hosts. Those of its FileStorage are files on the
// shared disk. They become stale by comparing the clocks of the hosts.
package certmagic

import (
	"context"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/named"
)

// Storage is a certmagic.Storage: certificates are in the wrapped one, locks are a Locker's. All
// instances with these certificates must use one, over the same Redis.
//
// It does not implement certmagic.LockLeaseRenewer: by it certmagic asks for a lease as long as the
// next attempt takes, up to hours. A Locker that renews keeps the lock for as long as the process
// lives, and frees it within one TTL of its death.
type Storage struct {
	certmagic.Storage // its Lock and Unlock are not used

	locks *named.Mutex
}

var (
	_ certmagic.Storage   = (*Storage)(nil)
	_ certmagic.TryLocker = (*Storage)(nil)
)

// New returns a Storage over s. Each lock is acquired by a copy of req with its Name set, so req
// must not have one. l waits and renews, as holdfast.New's.
//
// Leave req.MaxWait zero for certificates managed in the background, as by Caddy: certmagic may
// hold a lock for hours while a CA is out of service, and after an error of Lock it does not try
// again soon. The ctx of a Lock ends when the configuration is unloaded.
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

// Unlock implements certmagic.Locker. If the lock was lost since Lock, the error matches
// locker.ErrLost, and certmagic logs it: another instance may have obtained the certificate too.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	return s.locks.Unlock(ctx, name)
}

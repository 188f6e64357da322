package simulate_test

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// sharing is the flaw of a resume that keeps the token.
const sharing = "sharing"

func newShares(drv driver.Driver) (locker.Locker, error) {
	l, err := single.New(drv, single.Config{})
	return shares{l, flaw{drv, compareAndDelete, false, true}}, err
}

// shares is a lock whose resumed holds have the token of the old ones, which still work.
type shares struct {
	*single.Locker
	flaw flaw
}

// Acquire implements locker.Locker.
func (s shares) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if req.Resume.IsZero() {
		return s.Locker.Acquire(ctx, req)
	}
	g := req.Resume.Grant()
	l := flawedLease{s.flaw, g.Name, g.Token}
	term, err := l.Do(ctx, lease.Op{Kind: lease.OpRenew, TTL: g.TTL})
	if errors.Is(err, locker.ErrLost) {
		err = locker.ErrNotHeld
	}
	if err == nil && !time.Now().Before(term.Deadline) {
		err = locker.ErrUnknownOutcome
	}
	if err != nil {
		return nil, &locker.OpError{Op: "resume", Name: g.Name, Err: err}
	}
	g.Deadline, g.Fence = term.Deadline, 0
	return locker.NewLock(ctx, g, l), nil
}

package gopeer

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// validity is the TTL of rueidislock, which its Locker has and not its locks. It renews by itself.
const validity = 10 * time.Minute

type rueidislockLibrary struct{ l rueidislock.Locker }

func newRueidislock(addr string, majority int32) (library, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:    majority,
		KeyValidity:    validity,
		ExtendInterval: time.Second,
		TryNextAfter:   10 * time.Second, // of one command; by default 20 ms, which a busy machine exceeds
	})
	return rueidislockLibrary{l}, err
}

func (r rueidislockLibrary) acquire(name string, _, wait time.Duration, _ string) (lock, error) {
	if wait == 0 {
		held, release, err := r.l.TryWithContext(context.Background(), name)
		return rueidislockLock{held, release}, lost(err, rueidislock.ErrNotLocked)
	}
	// The context of the acquire is that of the lock.
	ctx, cancel := context.WithCancel(context.Background())
	timer := time.AfterFunc(wait, cancel)
	held, release, err := r.l.WithContext(ctx, name)
	if !timer.Stop() && err == nil {
		release()
		err = context.Canceled
	}
	if err != nil {
		cancel()
		return nil, lost(err, rueidislock.ErrNotLocked, context.Canceled)
	}
	return rueidislockLock{held, func() { release(); cancel() }}, nil
}

type rueidislockLock struct {
	held context.Context
	stop context.CancelFunc
}

func (l rueidislockLock) renew(time.Duration) error {
	return errors.New("it renews by itself, and has no call for that")
}

func (l rueidislockLock) release() error {
	err := l.held.Err()
	l.stop()
	return lost(err, context.Canceled)
}

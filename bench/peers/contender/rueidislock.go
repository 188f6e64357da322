package contender

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidisLock is a lock of rueidislock. Its context ends when it is lost.
type rueidisLock struct {
	held    context.Context
	release context.CancelFunc
}

// Release implements Lock.
func (l *rueidisLock) Release(context.Context) error {
	err := l.held.Err()
	l.release()
	return err
}

// rueidislockOn opens rueidislock with one key for each lock, as the others have. By default it
// writes three, and two of them must succeed.
func rueidislockOn(opts Options) (*Locks, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: opts.Addrs},
		KeyMajority:    1,
		KeyValidity:    opts.TTL,
		NoLoopTracking: true,
	})
	if err != nil {
		return nil, err
	}
	open, end := context.WithCancel(context.Background())
	return &Locks{
		Acquire: func(name string) (Lock, error) {
			held, release, err := l.WithContext(open, name)
			if err != nil {
				return nil, err
			}
			return &rueidisLock{held, release}, nil
		},
		Close: func() { end(); l.Close() },
	}, nil
}

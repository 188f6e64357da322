package machines

import (
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestSingle(t *testing.T) {
	t.Parallel()
	walk(t, kind{make: func(d driver.Driver) (locker.Locker, error) { return single.New(d, single.Config{}) }})
}

func TestReentrant(t *testing.T) {
	t.Parallel()
	walk(t, kind{hash: true, reentrant: true, make: func(d driver.Driver) (locker.Locker, error) {
		return reentrant.New(d, reentrant.Config{})
	}})
}

func TestRWHash(t *testing.T) {
	t.Parallel()
	walk(t, kind{hash: true, shared: true, make: func(d driver.Driver) (locker.Locker, error) {
		return rwhash.New(d, rwhash.Config{})
	}})
}

func TestSemaphore(t *testing.T) {
	t.Parallel()
	walk(t, kind{hash: true, permits: 3, make: func(d driver.Driver) (locker.Locker, error) {
		return semaphore.New(d, semaphore.Config{Permits: 3})
	}})
}

func TestWatchdog(t *testing.T) {
	t.Parallel()
	walk(t, kind{watched: true, make: func(d driver.Driver) (locker.Locker, error) {
		l, err := single.New(d, single.Config{})
		if err != nil {
			return nil, err
		}
		mw, err := watchdog.New(watchdog.Config{Jitter: 1e-12}) // next to none: a walk must repeat itself
		if err != nil {
			return nil, err
		}
		return &watchedSingle{mw(l), l}, nil
	}})
}

// watchedSingle inspects by the strategy, which the middleware hides.
type watchedSingle struct {
	locker.Locker
	locker.Inspector
}

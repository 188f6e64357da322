package machines

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestWalks(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]kind{
		"single": {make: func(d driver.Driver) (locker.Locker, error) { return single.New(d, single.Config{}) }},
		"reentrant": {hash: true, reentrant: true, make: func(d driver.Driver) (locker.Locker, error) {
			return reentrant.New(d, reentrant.Config{})
		}},
		"rwhash": {hash: true, shared: true, make: func(d driver.Driver) (locker.Locker, error) {
			return rwhash.New(d, rwhash.Config{})
		}},
		"semaphore": {hash: true, permits: 3, make: func(d driver.Driver) (locker.Locker, error) {
			return semaphore.New(d, semaphore.Config{Permits: 3})
		}},
		"watchdog": {watched: true, make: func(d driver.Driver) (locker.Locker, error) {
			l := locker.Must(single.New(d, single.Config{}))
			mw := locker.Must(watchdog.New(watchdog.Config{Jitter: 1e-12})) // next to none: a walk must repeat itself
			return &watchedSingle{mw(l), l}, nil
		}},
	}, func(t *testing.T, k kind) {
		walk(t, k)
	})
}

// watchedSingle inspects by the strategy behind the middleware.
type watchedSingle struct {
	locker.Locker
	locker.Inspector
}

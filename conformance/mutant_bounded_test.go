package conformance

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func TestMutantsWithReleaseTimeout(t *testing.T) {
	t.Parallel()
	ignores := func(drv driver.Driver, _ time.Duration) (locker.Locker, error) {
		return single.New(drv, single.Config{})
	}
	convict(t, []suspect{{
		"a release that waits as long as it likes", &Harness{Dial: plain, NewReleaseTimeout: ignores}, &Harness{Dial: plain},
		[]string{"a release waits for no longer than its timeout"},
	}})
}

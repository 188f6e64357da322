package conformance

import (
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func TestMutantsWithReleaseTimeout(t *testing.T) {
	t.Parallel()
	ignores := func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
		return single.New(drv, single.Config{AttemptTimeout: bound.Attempt})
	}
	convict(t, []suspect{{
		"a release that waits as long as it likes",
		&Harness{Dial: plain, New: ignores, Can: Capabilities{ReleaseTimeout: true}}, &Harness{Dial: plain},
		[]string{"a release waits for no longer than its timeout"},
	}})
}

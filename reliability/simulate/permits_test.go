package simulate_test

import (
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/reliability/workload"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// tooMany is the flaw of a semaphore that grants a permit too many.
const tooMany = "too-many"

func newTooMany(drv driver.Driver) (locker.Locker, error) {
	return semaphore.New(drv, semaphore.Config{Permits: workload.Permits + 1})
}

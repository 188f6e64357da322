package resolve

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/locker/driver"
)

var errResultCount = errors.New("the driver returned another number of results than it was given calls")

// EvalMany sends calls through drv, a driver.Batcher, in one round trip, and returns as many
// results.
func EvalMany(ctx context.Context, drv driver.Driver, calls []driver.Call) []driver.Result {
	results := drv.(driver.Batcher).EvalMany(ctx, calls) //nolint:errcheck // the callers check it
	if len(results) == len(calls) {
		return results
	}
	results = make([]driver.Result, len(calls)) // it is not known which is whose
	for i := range results {
		results[i].Err = errResultCount
	}
	return results
}

package reentrant_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// odd is a driver.Batcher that returns more or fewer results than it got calls.
type odd struct {
	driver.Driver
	results []driver.Result
}

func (o *odd) EvalMany(context.Context, []driver.Call) []driver.Result { return o.results }

// A batch with the wrong number of results renews nothing.
func TestOddBatch(t *testing.T) {
	t.Parallel()
	yes := driver.Result{Reply: locker.Must(driver.NewReply(int64(1)))}
	for what, results := range map[string][]driver.Result{"none": nil, "too few": {yes}, "too many": {yes, yes, yes}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, reentrant.Config{})
				l := locker.Must(reentrant.New(&odd{b.drv, results}, reentrant.Config{}))
				var locks []*locker.Lock
				var holds []lease.Hold
				for range 2 {
					lock, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})
					match(t, err)
					locks, holds = append(locks, lock), append(holds, lock.Hold())
				}
				until := locks[0].Deadline()
				sleep(time.Second)
				for i, err := range lease.RenewBatch(t.Context(), holds) {
					match(t, err, locker.ErrUnknownOutcome)
					if !locks[i].Deadline().Equal(until) {
						t.Errorf("the Deadline is %v, want %v", locks[i].Deadline(), until)
					}
				}
				release(t, locks...)
			})
		})
	}
}

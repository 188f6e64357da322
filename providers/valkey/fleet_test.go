package valkey_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// While a team goes over from rueidis to valkey-go, programs over both lock the same names. They
// exclude and wake one another, and draw fencing tokens from the same counter.
func TestMixedFleet(t *testing.T) {
	t.Parallel()
	const programs, cycles = 4, 25
	addr := redistest.Start(t, redistest.Options{}).Addr()
	var holders, last atomic.Int64
	ended := make(chan error, programs)
	for i := range programs {
		client := clients.WithFork[1] // rueidis
		if i%2 == 1 {
			client = clients.WithFork[3] // valkey-go
		}
		l := locker.Must(holdfast.New(client.Open(t, addr), holdfast.Config{}))
		go func() {
			var errs []error
			for range cycles {
				lock, err := l.Acquire(t.Context(), locker.Request{Name: "mixed fleet", Fenced: true, MaxWait: time.Minute})
				if err != nil {
					errs = append(errs, err)
					break
				}
				if n := holders.Add(1); n != 1 {
					errs = append(errs, fmt.Errorf("%d hold the lock", n))
				}
				if before := last.Swap(lock.Fence()); before >= lock.Fence() {
					errs = append(errs, fmt.Errorf("token %d after %d", lock.Fence(), before))
				}
				holders.Add(-1)
				errs = append(errs, lock.Release(t.Context()))
			}
			ended <- errors.Join(errs...)
		}()
	}
	for range programs {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A program over valkey-go releases a hold that one over rueidis acquired, and the other way round.
func TestMixedFleetResumes(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, redistest.Options{}).Addr()
	drivers := []driver.Driver{clients.WithFork[1].Open(t, addr), clients.WithFork[3].Open(t, addr)}
	for i, from := range drivers {
		req := locker.Request{Name: fmt.Sprint("handed over ", i), Fenced: true}
		lock, err := locker.Must(holdfast.New(from, holdfast.Config{})).Acquire(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		resumed, err := locker.Resume(t.Context(), locker.Must(holdfast.New(drivers[1-i], holdfast.Config{})), lock.Handle())
		if err != nil {
			t.Fatal(err)
		}
		if resumed.Fence() <= lock.Fence() {
			t.Errorf("token %d after %d", resumed.Fence(), lock.Fence())
		}
		if err := resumed.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	}
}

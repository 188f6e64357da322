//nolint:forbidigo // fake time
package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// Removals of known holds pass acquires waiting for a connection.
func TestCleanUpPassesAcquires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pipeline := adapter.NewPipeline(adapter.Client{
			Connections: 10, Single: true, Send: func(_ context.Context, commands []*adapter.Command) {
				time.Sleep(100 * time.Millisecond)
				commands[0].Begin()
				commands[0].Answer(int64(1), nil)
			},
		})
		client := &adapter.Driver{Pipelines: pipeline}
		send := func(ctx context.Context) error {
			_, err := client.Do(ctx, "PING")
			return err
		}
		var stop atomic.Bool
		s := newServer(func(ctx context.Context, _ string, _ int) (bool, error) { return true, send(ctx) })
		for i := range 2000 {
			go func() {
				time.Sleep(time.Duration(i) * 500 * time.Microsecond)
				for !stop.Load() {
					ctx := bounded.New(context.Background(), time.Second)
					_ = send(ctx) // it may not get to it in time
					ctx.Stop()
				}
			}()
		}
		time.Sleep(3 * time.Second)
		began := time.Now()
		var within5, ever atomic.Int64
		for i := range 50 {
			resolve.CleanUp(s, s.heldResidue(fmt.Sprint("won", i), time.Second, func() {
				ever.Add(1)
				if time.Since(began) < 5*time.Second {
					within5.Add(1)
				}
			}))
		}
		time.Sleep(40 * time.Second)
		check.AtLeast(t, fmt.Sprintf("of %d removed keys, those within 5 s", ever.Load()), within5.Load(), 50)
		ever.Store(0)
		for i := range 50 {
			resolve.CleanUp(s, s.heldResidue(fmt.Sprint("close", i), time.Second, func() { ever.Add(1) }))
		}
		if err := s.Close(); err != nil || ever.Load() < 50 {
			t.Errorf("Close removed %d of 50 keys: %v", ever.Load(), err)
		}
		stop.Store(true)
		time.Sleep(2 * time.Second)
	})
}

// Removals of known holds do not wait while a frozen node keeps leaving possible holds, 200 in a
// second.
func TestFrozenNodeDelaysNoKnownHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const holds = 100
		var worst, removed atomic.Int64
		start := time.Now()
		s := newServer(func(ctx context.Context, key string, _ int) (bool, error) {
			added, err := time.ParseDuration(key)
			if err != nil { // at the frozen node
				<-ctx.Done()
				return false, ctx.Err()
			}
			removed.Add(1)
			worst.Store(max(worst.Load(), int64(time.Since(start)-added)))
			return true, nil
		})
		for i := range 10 * holds {
			r := s.residue(t, fmt.Sprint("frozen", i), 1, false)
			r.Timeout = 3 * time.Second
			resolve.CleanUp(s, r)
			if i%10 == 0 {
				resolve.CleanUp(s, s.heldResidue(time.Since(start).String(), 3*time.Second, func() {}))
			}
			time.Sleep(5 * time.Millisecond)
		}
		if removed.Load() != holds || worst.Load() > int64(50*time.Millisecond) {
			t.Errorf("%d of %d keys were removed, the slowest after %v; want all within 50 ms",
				removed.Load(), holds, time.Duration(worst.Load()))
		}
		_ = s.Close()
		time.Sleep(5 * time.Second)
	})
}

// Removals of known holds are repeated within the budget while a server refuses them, and all
// succeed soon after.
func TestRefusedRemovals(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]error{
		"read-only replica": serverError("READONLY You can't write against a read only replica."),
		"no connection":     driver.NotSent(errors.New("connection refused")),
	}, func(t *testing.T, refusal error) {
		const holds = 5000
		var recovered atomic.Bool
		var removed atomic.Int64
		s := newServer(func(context.Context, string, int) (bool, error) {
			if !recovered.Load() {
				return false, refusal
			}
			return true, nil
		})
		for i := range holds {
			resolve.CleanUp(s, s.heldResidue(fmt.Sprint(i), time.Second, func() { removed.Add(1) }))
		}
		time.Sleep(15 * time.Second)
		check.AtMost(t, "scripts a second while all are refused", s.sent(5*time.Second, 15*time.Second)/10, 1000)
		recovered.Store(true)
		time.Sleep(10 * time.Second)
		check.AtLeast(t, "holds removed within 10 s of the recovery", removed.Load(), holds)
		check.OK(t, s.Close())
	})
}

// Close waits for the clean-up of an acquire under way, even if a release of unknown outcome runs
// the cleaner. Close does not wait for the release.
func TestCloseWaitsBesideARelease(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]bool{"alone": false, "released": true}, func(t *testing.T, released bool) {
		var removed atomic.Bool
		s := newServer(func(_ context.Context, key string, _ int) (bool, error) {
			time.Sleep(100 * time.Millisecond)
			if key == "released" {
				return false, errCut
			}
			return true, nil
		})
		end, err := s.BeginAcquire()
		check.Must(t, err)
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		synctest.Wait()
		if released {
			go resolve.CleanUp(s, s.heldResidue("released", time.Second, func() {}))
			time.Sleep(20 * time.Millisecond)
		}
		resolve.CleanUp(s, s.heldResidue("won", time.Second, func() { removed.Store(true) }))
		end()
		if err := <-closed; err != nil || !removed.Load() {
			t.Errorf("Close: %v, the key of the acquire is removed: %v", err, removed.Load())
		}
		time.Sleep(time.Minute)
	})
}

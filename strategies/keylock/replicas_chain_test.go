//realtime:ok each test runs in a bubble, by eachStrategy or newBench

package keylock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestWaiterOutlastsAShortfall(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
		b.frozen.Store(true)
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 5 * time.Second})
		wantIs(t, err, locker.ErrNotReplicated)
		wantIs(t, err, locker.ErrMaxWait)
		time.AfterFunc(5*time.Second, func() { b.frozen.Store(false) })
		start := time.Now()
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: time.Minute})
		wantNone(t, err)
		if took := time.Since(start); took < 5*time.Second || took > 10*time.Second {
			t.Errorf("acquired after %v, want one soon after the replica is back", took)
		}
		wantNone(t, lock.Release(t.Context()))
	})
}

func TestWatchdogOutlastsAShortfall(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		l := locker.Chain(b.Locker, locker.Must(watchdog.New(watchdog.Config{})))
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: 30 * time.Second})
		wantNone(t, err)
		b.frozen.Store(true)
		time.Sleep(25 * time.Second) //nolint:forbidigo // fake time
		b.frozen.Store(false)
		time.Sleep(25 * time.Second) //nolint:forbidigo // fake time
		if lock.Err() != nil {
			t.Errorf("lost though the replica came back in time: %v", lock.Err())
		}
		b.frozen.Store(true)
		before := lock.Deadline()
		<-lock.Done()
		if now := time.Now(); now.Before(before) || now.After(before.Add(time.Second)) {
			t.Errorf("it ended %v after its Deadline", now.Sub(before))
		}
		wantIs(t, lock.Err(), locker.ErrLost)
		wantIs(t, lock.Err(), locker.ErrNotReplicated) // why it was not renewed
	})
}

package rwhash_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// An upgrade whose outcome stayed unknown was executed; the next upgrade finds nothing to do and must still get the token.
func TestReviewUpgradeAfterUnknownUpgradeHasAStaleFence(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		w := b.write(t, locker.Request{Fenced: true, Owner: "w"})
		writersFence := w.Fence()
		release(t, w)
		lock := b.read(t, locker.Request{Fenced: true, TTL: time.Hour})
		if lock.Fence() != writersFence {
			t.Fatalf("reader %d, writer %d", lock.Fence(), writersFence)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		b.drv.Then(fault{Lose: true}, fault{Hang: true})
		match(t, lock.Upgrade(ctx), locker.ErrUnknownOutcome)
		match(t, lock.Upgrade(t.Context())) // as the docs advise
		if lock.Mode() != locker.Exclusive || lock.Fence() <= writersFence {
			t.Errorf("%v is a writer with token %d; an earlier writer had %d (counter %s)", lock.Mode(), lock.Fence(), writersFence, b.get(t, counter))
		}
		release(t, lock)
	})
}

func (b bench) get(t *testing.T, key string) string {
	t.Helper()
	v, err := b.m.Get(key)
	match(t, err)
	return v
}

// A reader 30 ms away, told of each release, never gets in beside a near reader and two near writers.
func TestReviewFarReaderStarves(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		start := time.Now()
		got := false
		far := func() {
			lock, err := b.Acquire(t.Context(), asReader(locker.Request{Owner: "far"}))
			if err == nil {
				got = true
				release(t, lock)
			}
		}
		w := b.write(t, locker.Request{})
		for time.Since(start) < time.Minute && !got {
			b.refusedAny(t, asReader(locker.Request{Owner: "near"}))
			b.refusedAny(t, asWriter(locker.Request{Owner: "w2"}))
			far()
			sleep(300 * time.Millisecond) // w's work; within the far one's RetryAfter
			release(t, w)
			near := b.read(t, locker.Request{Owner: "near"})
			b.refusedAny(t, asWriter(locker.Request{Owner: "w2"}))
			sleep(5 * time.Millisecond)
			release(t, near)
			next, err := b.Acquire(t.Context(), asWriter(locker.Request{Owner: "w2"}))
			sleep(25 * time.Millisecond)
			far() // it hears of w's release 30 ms later
			if err != nil {
				break // a long turn
			}
			w = next
		}
		if !got {
			t.Errorf("the far reader did not get in for %v, though it tried 30 ms after each release", time.Since(start))
		}
		_ = w.Release(t.Context())
	})
}

func (b bench) refusedAny(t *testing.T, req locker.Request) {
	t.Helper()
	if _, err := b.Acquire(t.Context(), req); !errors.Is(err, locker.ErrNotAcquired) {
		t.Fatalf("%v %s: %v", req.Mode, req.Owner, err)
	}
}

// Writers whose waiting is bounded: those who give up leave the lock idle.
func TestReviewIdleLockUnderShortWaits(t *testing.T) {
	for _, told := range []bool{false, true} {
		for _, mode := range []string{"writers", "readers"} {
			t.Run(fmt.Sprintf("%s, waiting told %v", mode, told), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := miniredis.NewMiniRedis()
					m.ClockTTL(true)
					var mu sync.Mutex
					var held time.Duration
					n, gaveUp := 0, 0
					start := time.Now()
					var wg sync.WaitGroup
					const lasts = 20 * time.Second
					for p := range 12 {
						bare := locker.Must(rwhash.New(dial(t, m), rwhash.Config{}))
						inner := locker.Locker(bare)
						if !told {
							inner = locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
								return bare.Acquire(unwaiting{ctx}, req)
							})
						}
						l := locker.Chain(inner, locker.Must(retry.New(retry.Config{})))
						wg.Go(func() {
							for time.Since(start) < lasts {
								req := locker.Request{Name: name, MaxWait: 200 * time.Millisecond}
								if mode == "readers" && p%2 == 0 {
									req.Mode = locker.Shared
								}
								lock, err := l.Acquire(t.Context(), req)
								if err != nil {
									mu.Lock()
									gaveUp++
									mu.Unlock()
									sleep(time.Duration(100+17*p) * time.Millisecond)
									continue
								}
								sleep(50 * time.Millisecond)
								mu.Lock()
								n++
								if req.Mode == locker.Exclusive {
									held += 50 * time.Millisecond
								}
								mu.Unlock()
								release(t, lock)
								sleep(time.Duration(50+13*p) * time.Millisecond)
							}
						})
					}
					wg.Wait()
					share := float64(held) / float64(time.Since(start))
					t.Logf("%d holds, %d gave up, writers held for %.0f %% of the time", n, gaveUp, 100*share)
					if mode == "writers" && share < 0.8 {
						t.Errorf("the lock was idle for %.0f %% of the time, while 12 wanted it", 100-100*share)
					}
				})
			})
		}
	}
}

type unwaiting struct{ context.Context }

func (u unwaiting) Value(key any) any {
	v := u.Context.Value(key)
	if _, ok := v.(locker.Waiting); ok {
		return nil
	}
	return v
}

// One writer that gave up keeps the free lock from the others for a second.
func TestReviewFreeLockKeptForOneThatGaveUp(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		l := locker.Chain(b, locker.Must(retry.New(retry.Config{})))
		first := b.write(t, locker.Request{})
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 100 * time.Millisecond, Owner: "gave up"})
		match(t, err, locker.ErrMaxWait)
		release(t, first)
		start := time.Now()
		for range 5 {
			_, err = l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 100 * time.Millisecond})
			if err == nil {
				break
			}
		}
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Errorf("the lock is free and nobody waits, yet it was refused for %v", d)
		}
	})
}

// On a server out of memory leases cannot be renewed, nor a writer downgrade, though single renews there.
func TestReviewRenewOutOfMemory(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { match(t, drv.Close()) })
	plain := locker.Must(single.New(drv, single.Config{}))
	l := locker.Must(rwhash.New(drv, rwhash.Config{}))
	s, err := plain.Acquire(t.Context(), locker.Request{Name: "s", TTL: time.Minute})
	match(t, err)
	r, err := l.Acquire(t.Context(), locker.Request{Name: "r", TTL: time.Minute})
	match(t, err)
	match(t, s.Renew(t.Context(), 0))
	match(t, r.Renew(t.Context(), 0))
	_, err = l.Acquire(t.Context(), locker.Request{Name: "r", TTL: time.Minute, NoWait: true})
	match(t, err, locker.ErrNotAcquired)
	server.MustCommand(t, "CONFIG", "SET", "maxmemory", "1")
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	if err := s.Renew(short(), 0); err != nil {
		t.Logf("single: Renew: %v", err)
	}
	if err := r.Renew(short(), 0); err != nil {
		t.Errorf("rwhash: Renew: %v", err)
	}
	_, err = l.Acquire(short(), locker.Request{Name: "r", TTL: time.Minute})
	match(t, err, locker.ErrNotAcquired)
	if err := r.Downgrade(short()); err != nil {
		t.Errorf("rwhash: Downgrade: %v", err)
	}
	if err := r.Release(short()); err != nil {
		t.Errorf("rwhash: Release: %v", err)
	}
	if err := s.Release(short()); err != nil {
		t.Errorf("single: Release: %v", err)
	}
}

// An upgrade that was answered with an error is executed later all the same.
func TestReviewFailedUpgradeIsDoneLater(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.read(t, locker.Request{Fenced: true, TTL: time.Hour})
		good := b.get(t, counter)
		match(t, b.m.Set(counter, "rubbish"))
		b.drv.Then(fault{Late: 10 * time.Second})
		err := lock.Upgrade(t.Context())
		if err == nil || errors.Is(err, locker.ErrUnknownOutcome) {
			t.Fatalf("%v", err)
		}
		t.Log(err)
		match(t, b.m.Set(counter, good))
		b.drv.WaitLate()
		b.holds(t, 1, locker.Shared)
		release(t, lock)
	})
}

// Holds of a second leave a key for a day.
func TestReviewKeyOutlivesItsHolds(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		long := b.read(t, locker.Request{TTL: 24 * time.Hour})
		for range 100 {
			b.read(t, locker.Request{TTL: time.Second})
		}
		release(t, long)
		for range 100 { // others come, and die
			b.read(t, locker.Request{TTL: time.Second})
		}
		sleep(2 * time.Second)
		b.holds(t, 0, locker.Exclusive)
		if b.m.Exists(name) {
			keys, _ := b.m.HKeys(name)
			t.Errorf("no hold is live, yet the key with %d fields lives for another %v", len(keys), b.m.TTL(name))
		}
	})
}

// A request with an owner that queues behind a writer of its own process leaves an intent that holds up that writer.
func TestReviewQueuedReaderHoldsUpItsOwnProcess(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		l := locker.Chain(b, locker.Must(retry.New(retry.Config{})))
		first := b.write(t, locker.Request{})
		got := make(chan time.Time, 1)
		go func() {
			lock, err := l.Acquire(t.Context(), locker.Request{Name: name})
			match(t, err)
			got <- time.Now()
			match(t, lock.Release(context.Background()))
		}()
		sleep(100 * time.Millisecond)
		done := make(chan struct{})
		go func() {
			defer close(done)
			lock, err := l.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared, Owner: "me"})
			match(t, err)
			match(t, lock.Release(context.Background()))
		}()
		sleep(10 * time.Millisecond)
		start := time.Now()
		release(t, first)
		if d := (<-got).Sub(start); d > 50*time.Millisecond {
			t.Errorf("the writer got the free lock %v after the release: it was kept for a reader queued behind it", d)
		}
		<-done
	})
}

// With an intent that by chance ends with the turn, the turn is taken for a long one.
func TestReviewTurnTakenForALongOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		b := bench{Locker: locker.Must(rwhash.New(dial(t, m), rwhash.Config{WriterTurn: time.Second})), m: m}
		w := b.write(t, locker.Request{})
		b.refusedAny(t, reader)
		release(t, w)
		release(t, b.read(t, locker.Request{}))
		sleep(herd)
		if _, err := b.Acquire(t.Context(), writer); err != nil {
			t.Errorf("the only reader got in and left: %v", err)
		}
	})
}

// A resume that fails, because its answer came late, ends the hold of a Lock whose lease goes on.
func TestReviewFailedResumeReleasesTheOldHold(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.write(t, locker.Request{TTL: 300 * time.Millisecond})
		match(t, lock.Renew(t.Context(), time.Minute))
		b.drv.Then(fault{Lose: true}, fault{Hang: true})
		_, err := locker.Resume(t.Context(), b, lock.Handle())
		match(t, err, locker.ErrLost)
		sleep(time.Second)
		other, err := b.Acquire(t.Context(), noWait(writer))
		if err == nil && lock.Err() == nil {
			t.Errorf("another writer got in while a Lock is held for another %v; the resume had failed", time.Until(lock.Deadline()))
			release(t, other)
		}
	})
}

// A writer behind a writer is told to come back when the lease ends; by then its intent has lapsed and the younger pass it.
func TestReviewPatientWriterLosesItsPlace(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		first := b.write(t, locker.Request{TTL: 20 * time.Second})
		old := locker.WithWaiting(t.Context(), time.Now().Add(-5*time.Second))
		_, err := b.Acquire(old, asWriter(locker.Request{Owner: "old"}))
		held, ok := errors.AsType[*locker.ContentionError](err)
		if !ok {
			t.Fatal(err)
		}
		if held.RetryAfter > back {
			t.Errorf("RetryAfter %v, the docs say %v at the latest", held.RetryAfter, back)
		}
		sleep(2 * time.Second) // less than RetryAfter; no release was published
		release(t, first)
		young, err := b.Acquire(t.Context(), asWriter(locker.Request{Owner: "young"}))
		if err == nil {
			t.Error("one that has not waited passed the one that did what it was told")
			release(t, young)
		}
	})
}

// As TestReviewFarReaderStarves, where writers come fresh: nobody waits at the moment when the near reader leaves.
func TestReviewFarReaderStarvesBesideFreshWriters(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		start := time.Now()
		for time.Since(start) < time.Minute {
			w := b.write(t, locker.Request{})
			sleep(20 * time.Millisecond)
			if lock, err := b.Acquire(t.Context(), asReader(locker.Request{Owner: "far"})); err == nil {
				release(t, lock)
				return
			}
			b.refusedAny(t, asReader(locker.Request{Owner: "near"}))
			sleep(300 * time.Millisecond)
			release(t, w)
			near := b.read(t, locker.Request{Owner: "near"})
			sleep(5 * time.Millisecond)
			release(t, near)
			sleep(time.Millisecond)
		}
		t.Errorf("the far reader did not get in for %v", time.Since(start))
	})
}

// All operations of one Lock at once, under the race detector.
func TestReviewAllAtOnce(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		for range 20 {
			lock := b.read(t, locker.Request{Fenced: true})
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() { _ = lock.Upgrade(t.Context()) })
				wg.Go(func() { _ = lock.Downgrade(t.Context()) })
				wg.Go(func() { _ = lock.Renew(t.Context(), 0) })
				wg.Go(func() { _, _ = lock.Handle(), lock.Fence() })
				if i == 3 {
					wg.Go(func() { match(t, lock.Release(t.Context())) })
				}
			}
			wg.Wait()
			b.free(t)
		}
	})
}

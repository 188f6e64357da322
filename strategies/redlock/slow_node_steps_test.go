package redlock_test

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// slowStep is one of the things that a walker may do next.
type slowStep struct {
	name string
	do   func()
}

func (w *slowWalker) steps() []slowStep {
	steps := []slowStep{
		{"renew", func() { w.renew(w.lock, w.dice, false) }},
		{"renew for longer", func() { w.renew(w.lock, w.dice, true) }},
		{"downgrade", func() { w.must("downgrade", func() error { return w.lock.Downgrade(w.Context()) }) }},
		{"upgrade", w.upgrade},
		{"upgrade", w.upgrade},
		{"nothing", func() { sleep(w.dice.lasts(20 * ms)) }},
	}
	for _, more := range []struct {
		when bool
		step slowStep
	}{
		{w.kind.resumes, slowStep{"resume", w.resume}},
		{w.kind.cuts, slowStep{"cut", w.cut}},
		{w.kind.reads, slowStep{"reader", w.beside}},
	} {
		if more.when {
			steps = append(steps, more.step)
		}
	}
	return steps
}

// renew demands that the lease lasts as long as it was renewed for, less the drift.
func (w *slowWalker) renew(lock *locker.Lock, d *dice, longer bool) {
	lease := ttl
	if longer {
		lease += d.lasts(time.Hour)
	}
	begin := time.Now()
	w.must("renew for "+lease.String(), func() error {
		err := lock.Renew(w.Context(), lease)
		if errors.Is(err, locker.ErrReleased) {
			err = nil // the walker did that meanwhile
		}
		return err
	})
	if drift := lease/50 + 2*time.Second; lock.Err() == nil && lock.Deadline().Before(begin.Add(lease-drift)) {
		w.failf("renewed for %v, and %v are left", lease, time.Until(lock.Deadline()))
	}
}

func (w *slowWalker) upgrade() {
	w.must("upgrade", func() error { return w.lock.Upgrade(w.Context()) })
}

// resume hands the Lock over, to this walker. Who had it releases it late.
func (w *slowWalker) resume() {
	sleep(50 * ms) // what is not slow has answered: the Handle names it
	old, handle := w.lock, w.lock.Handle()
	w.must("resume", func() error {
		next, err := locker.Resume(w.Context(), w.locks, handle)
		if err == nil {
			w.lock = next
		}
		return err
	})
	if w.lock == old {
		return
	}
	old.Hold().MarkLost(errors.New("handed over"))
	go func() {
		sleep(7 * time.Second)
		_ = old.Release(bg)
	}()
}

// cut is a call whose ctx ends at some moment. Its outcome is unknown, but the lock is not lost by
// it.
func (w *slowWalker) cut() {
	call := []func(context.Context) error{w.lock.Upgrade, w.lock.Downgrade,
		func(ctx context.Context) error { return w.lock.Renew(ctx, time.Hour) }}[w.dice.upTo(3)]
	ctx, cancel := context.WithTimeout(w.Context(), w.dice.lasts(4*ms))
	defer cancel()
	w.must("cut", func() error {
		err := call(ctx)
		if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, locker.ErrNotHeld) {
			return nil
		}
		return err
	})
}

// beside shares the lock with a reader for a moment, who is in the way of an upgrade then.
func (w *slowWalker) beside() {
	w.must("downgrade", func() error { return w.lock.Downgrade(w.Context()) })
	sleep(20 * ms) // all that is not slow is shared
	var reader *locker.Lock
	w.must("acquire beside", func() (err error) {
		reader, err = w.locks.Acquire(w.Context(), locker.Request{Name: name, Owner: "reader", TTL: ttl, Mode: locker.Shared})
		return err
	})
	if reader == nil {
		return
	}
	w.must("upgrade beside", func() error {
		if err := w.lock.Upgrade(w.Context()); !errors.Is(err, locker.ErrNotAcquired) {
			return errors.Join(errors.New("not refused"), err)
		}
		return nil
	})
	if w.dice.upTo(2) == 0 {
		w.renew(w.lock, w.dice, false)
	}
	_ = reader.Release(w.Context()) // where a slow node is of its quorum, that may be unknown
	sleep(20 * ms)                  // what is not slow has it no more
}

// pause waits at random; false: ctx has ended.
func (d *dice) pause(ctx context.Context, upTo time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d.lasts(upTo)):
		return true
	}
}

func (w *slowWalker) renewAllTheWhile(ctx context.Context, lock *locker.Lock) {
	for d := newDice(w.seed, 1); d.pause(ctx, 20*ms); {
		w.renew(lock, d, d.upTo(3) == 0)
	}
}

// contend demands that nobody else gets the lock.
func (w *slowWalker) contend(ctx context.Context, lock *locker.Lock) {
	req := locker.Request{Name: name, Owner: "other", TTL: time.Minute, NoWait: true}
	sleep(20 * ms) // what is not slow has answered the acquire: none of it is to be had
	for d := newDice(w.seed, 2); d.pause(ctx, 40*ms); {
		other, err := w.locks.Acquire(w.Context(), req)
		if err != nil {
			continue // it is held, or what a slow node says would decide
		}
		if lock.Err() == nil {
			w.failf("two hold at once")
		}
		_ = other.Release(bg)
	}
}

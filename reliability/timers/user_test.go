package timers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// user uses one strategy. Its leases last an hour, so a timer left by one is found.
type user struct {
	*testing.T
	strategy
	ctx         context.Context //nolint:containedctx // of all calls
	servers     []*redistest.Server
	calm, hasty locker.Locker
	held        []*locker.Lock // locks for the failures: one for each
}

func (u *user) request(name string) locker.Request {
	return locker.Request{Name: u.name + " " + name, TTL: time.Hour}
}

func (u *user) acquire(ctx context.Context, l locker.Locker, req locker.Request) *locker.Lock {
	lock, err := l.Acquire(ctx, req)
	u.none("Acquire", err)
	return lock
}

// none demands no error, some an error.
func (u *user) none(what string, err error) {
	if err != nil {
		u.Errorf("%s: %s: %v", u.name, what, err)
	}
}

func (u *user) some(what string, err error) {
	if err == nil {
		u.Errorf("%s: %s: no error", u.name, what)
	}
}

// succeeds makes the successful calls, beginning with the long ones.
func (u *user) succeeds() {
	u.renewed()
	u.uses()
	u.loses()
	u.contended()
}

// prepare acquires the locks for the failures.
func (u *user) prepare() {
	for i := range 2 {
		lock := u.acquire(u.ctx, u.hasty, u.request(fmt.Sprint("held ", i)))
		lock.Done()
		u.held = append(u.held, lock)
	}
}

// uses calls the methods of locks.
func (u *user) uses() {
	ctx := u.ctx
	lock := u.acquire(ctx, u.calm, u.request("plain"))
	lock.Done()
	lock.AfterDone(func(error) {})
	_, cancel := lock.Context(ctx)
	defer cancel()
	u.none("Renew", lock.Renew(ctx, 0))
	if u.converts {
		u.none("Downgrade", lock.Downgrade(ctx))
		u.none("Upgrade", lock.Upgrade(ctx))
	}
	next, err := locker.Resume(ctx, u.calm, lock.Handle())
	u.none("Resume", err)
	next.Done()
	u.some("Release of what was resumed", lock.Release(ctx))
	u.none("Release", next.Release(ctx))
	u.none("Do", locker.Do(ctx, u.calm, u.request("Do"), func(context.Context, *locker.Lock) error { return nil }))

	fenced := u.request("fenced")
	fenced.Fenced, fenced.MaxWait = true, time.Hour
	u.none("Do with a fence", locker.Do(ctx, u.calm, fenced, func(context.Context, *locker.Lock) error { return nil }))
}

// renewed holds some locks until they were renewed, by the watchdog if there is one.
func (u *user) renewed() {
	renewals := make(chan struct{}, 10)
	ctx := locktrace.With(u.ctx, &locktrace.Trace{Renewed: func(context.Context, locktrace.RenewedInfo) { renewals <- struct{}{} }})
	locks := make([]*locker.Lock, 3)
	for i := range locks {
		req := u.request(fmt.Sprint(i))
		if u.watches {
			req.TTL = 6 * time.Second
		}
		locks[i] = u.acquire(ctx, u.calm, req)
		locks[i].Done()
	}
	for _, lock := range locks {
		if !u.watches {
			u.none("Renew", lock.Renew(ctx, 0))
		}
	}
	for range locks {
		<-renewals
	}
	for _, lock := range locks {
		u.none("Release", lock.Release(ctx))
	}
}

// contended waits for another's lock.
func (u *user) contended() {
	req := u.request("contended")
	holder := u.acquire(u.ctx, u.calm, req)

	now := req
	now.NoWait = true
	_, err := u.hasty.Acquire(u.ctx, now)
	u.some("Acquire without waiting", err)
	ran, err := locker.Try(u.ctx, u.calm, req, func(context.Context, *locker.Lock) error { return nil })
	if u.none("Try", err); ran {
		u.Errorf("%s: Try ran while another held it", u.name)
	}
	brief := req
	brief.MaxWait = 100 * time.Millisecond
	_, err = u.calm.Acquire(u.ctx, brief)
	u.some("Acquire with MaxWait", err)

	ctx, cancel := context.WithCancel(u.ctx)
	defer cancel()
	waits := make(chan struct{})
	left, got := make(chan error, 2), make(chan *locker.Lock, 1)
	go func() { got <- u.acquire(u.subscribed(waits), u.calm, req) }()
	<-waits
	for range cap(left) { // one more at the same chain, one at another
		l := u.calm
		if len(left) > 0 {
			l = u.hasty
		}
		go func() {
			_, err := l.Acquire(ctx, req)
			left <- err
		}()
	}
	cancel()
	for range cap(left) {
		u.some("Acquire of who left", <-left)
	}
	u.none("Release", holder.Release(u.ctx))
	u.none("Release", (<-got).Release(u.ctx))
}

// subscribed returns a ctx that closes waits, once, when a waiter is subscribed.
func (u *user) subscribed(waits chan<- struct{}) context.Context {
	var once sync.Once
	return locktrace.With(u.ctx, &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
		if info.Subscribed {
			once.Do(func() { close(waits) })
		}
	}})
}

// loses loses a lock.
func (u *user) loses() {
	ctx, req := u.ctx, u.request("lost")
	lock := u.acquire(ctx, u.calm, req)
	lock.Done()
	for _, s := range u.servers {
		_, err := s.Command("DEL", req.Name)
		u.none("DEL", err)
	}
	u.some("Renew of what is gone", lock.Renew(ctx, 0))
	<-lock.Done()
	u.some("Release of what is gone", lock.Release(ctx))
}

// fails makes calls to silent servers: all fail.
func (u *user) fails() {
	late := func() context.Context {
		//realtime:ok any instant will do
		ctx, cancel := context.WithTimeout(u.ctx, 100*time.Millisecond)
		u.Cleanup(cancel)
		return ctx
	}
	early, cancel := context.WithCancel(u.ctx)
	defer cancel()
	//realtime:ok any instant will do
	time.AfterFunc(20*time.Millisecond, cancel)

	brief, once := u.request("brief"), u.request("once")
	brief.MaxWait, once.NoWait = 100*time.Millisecond, true
	var wg sync.WaitGroup
	for _, l := range []locker.Locker{u.calm, u.hasty} {
		for _, attempt := range []struct {
			ctx context.Context //nolint:containedctx // of one call
			req locker.Request
		}{
			{late(), u.request("late")}, {early, u.request("early")}, {u.ctx, brief}, {late(), once},
		} {
			wg.Go(func() {
				_, err := l.Acquire(attempt.ctx, attempt.req)
				u.some("Acquire "+attempt.req.Name, err)
			})
		}
	}
	wg.Wait()
	lock := u.held[0]
	u.held = u.held[1:]
	u.some("Renew", lock.Renew(late(), 0))
	if u.converts {
		u.some("Downgrade", lock.Downgrade(late()))
	}
	u.some("Release", lock.Release(late()))
}

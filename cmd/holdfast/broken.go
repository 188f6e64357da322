package main

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// brokenChannel returns the channel on which release announces that it has ended the holds of a
// key. ACL rules allow it with the channels of waiters.
func brokenChannel(key string) (string, bool) {
	wake, ok := driver.Sibling(key, driver.WakeSuffix)
	return wake + ":broken", ok
}

var publishScript = driver.NewScript("return redis.call('PUBLISH', ARGV[1], '')")

// announceBroken tells the holders of a key that release has ended their holds. A holder that does
// not hear of it finds out at its next renewal, so errors are ignored.
func (c connection) announceBroken(ctx context.Context, key string) {
	channel, ok := brokenChannel(key)
	if !ok {
		return
	}
	var all sync.WaitGroup
	for _, s := range c {
		all.Go(func() { _, _ = s.drv.Eval(ctx, publishScript, nil, []string{channel}) })
	}
	all.Wait()
}

// breakable is a Locker whose locks are renewed as soon as release announces that it has ended a hold
// of their key: then they are lost.
type breakable struct {
	locker.Locker
	c      connection
	prefix string
}

// Unwrap returns the Locker without that.
func (b breakable) Unwrap() locker.Locker { return b.Locker }

// Acquire implements locker.Locker.
func (b breakable) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := b.Locker.Acquire(ctx, req)
	if err != nil {
		return nil, err
	}
	if channel, ok := brokenChannel(b.prefix + req.Name); ok {
		for _, s := range b.c {
			go renewOnWake(s.drv, channel, lock) //nolint:gosec // the lock outlives ctx
		}
	}
	return lock, nil
}

// subscribePause is how long renewOnWake waits after a subscription that failed.
const subscribePause = time.Second

func renewOnWake(drv driver.Driver, channel string, lock *locker.Lock) {
	ctx, cancel := lock.Context(context.Background())
	defer cancel()
	sub, err := drv.Subscribe(ctx, channel)
	for ; err != nil; sub, err = drv.Subscribe(ctx, channel) {
		if !driver.Transient(err) { // such as one of the ACL
			return
		}
		select {
		case <-time.After(subscribePause):
		case <-ctx.Done():
			return
		}
	}
	defer func() { _ = sub.Close() }()
	for {
		select {
		case <-sub.Wake(): // also after each subscription: a message may have been lost before
			_ = lock.Renew(ctx, 0)
		case <-ctx.Done():
			return
		}
	}
}

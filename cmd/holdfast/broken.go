package main

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// brokenChannel returns the channel from release to the holders of a key: it announces the end of
// their holds. ACL rules allow it with the channels of waiters.
func brokenChannel(key string) (string, bool) {
	wake, ok := sibling.Of(key, sibling.WakeSuffix)
	return wake + ":broken", ok
}

var publishScript = driver.NewScript("return redis.call('PUBLISH', ARGV[1], '')")

// announceBroken tells the holders of a key of the end of their holds by release. Errors are
// ignored: without the message a holder finds out at its next renewal.
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

// breakable renews its locks of a key as soon as release announces the end of a hold: an ended one
// is then lost.
type breakable struct {
	locker.Locker
	c      connection
	prefix string
}

// Unwrap returns the wrapped Locker.
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

// subscribePause is renewOnWake's pause after a failed subscription.
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

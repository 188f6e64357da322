package main

import (
	"context"
	"sync"

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

// renewWhenBroken renews a lock as soon as release announces that it has ended a hold of its key:
// then the lock is lost. The function that it returns ends that.
func (c connection) renewWhenBroken(key string, lock *locker.Lock) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	if channel, ok := brokenChannel(key); ok {
		for _, s := range c {
			all.Go(func() { renewOnWake(ctx, s.drv, channel, lock) })
		}
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func renewOnWake(ctx context.Context, drv driver.Driver, channel string, lock *locker.Lock) {
	sub, err := drv.Subscribe(ctx, channel)
	if err != nil {
		return
	}
	defer func() { _ = sub.Close() }()
	for {
		select {
		case <-sub.Wake(): // also after an interruption, in which a message may have been lost
			_ = lock.Renew(ctx, 0)
		case <-lock.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

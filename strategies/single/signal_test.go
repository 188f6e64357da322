package single_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const (
	springKey     = "registryKey:" + name
	springChannel = "registryKey-channel:" + springKey
	pythonList    = "lock-signal:" + name
)

var (
	spring = single.Config{Prefix: "registryKey:", AttemptTimeout: time.Second, Signal: single.SpringPubSub}
	python = single.Config{Prefix: "lock:", AttemptTimeout: time.Second, Signal: single.PythonRedisLock}
)

// A release sends the signal of the other library if it leaves the lock free.
func TestReleaseSignals(t *testing.T) {
	type test struct {
		cfg     single.Config
		req     locker.Request
		end     func(t *testing.T, b bench, lock *locker.Lock)
		signals bool
	}
	release := func(t *testing.T, _ bench, lock *locker.Lock) {
		t.Helper()
		check.OK(t, lock.Release(t.Context()))
	}
	tests := map[string]test{}
	for library, cfg := range map[string]single.Config{"Spring": spring, "python-redis-lock": python} {
		tests[library+", a release"] = test{cfg, locker.Request{}, release, true}
		tests[library+", a release whose reply is lost"] = test{cfg, locker.Request{}, func(t *testing.T, b bench, lock *locker.Lock) {
			b.drv.Then(fault{Lose: true})
			release(t, b, lock)
		}, true}
		tests[library+", Break"] = test{cfg, locker.Request{}, func(t *testing.T, b bench, _ *locker.Lock) {
			locker.Must(locker.Break(t.Context(), b, name))
		}, true}
		tests[library+", a minimum hold"] = test{cfg, locker.Request{MinHold: time.Minute}, release, false}
		tests[library+", a lost lock"] = test{cfg, locker.Request{}, func(t *testing.T, b bench, lock *locker.Lock) {
			check.OK(t, b.m.Set(cfg.Prefix+name, "of another"))
			check.Is(t, lock.Release(t.Context()), locker.ErrLost)
		}, false}
	}
	eachRun(t, single.Config{}, tests, func(t *testing.T, b bench, tt test) {
		b.Locker = locker.Must(single.New(b.drv, tt.cfg))
		channel := locker.Must(b.drv.Subscribe(t.Context(), springChannel))
		lock := b.acquire(t, tt.req)
		b.signals(t, channel.Wake()) // the subscription is made
		tt.end(t, b, lock)
		want := 0
		if tt.signals {
			want = 1
		}
		check.Equal(t, "signals", b.signals(t, channel.Wake()), want)
		check.OK(t, channel.Close())
	})
}

// signals returns the number of signals sent: messages to Spring, and elements of python-redis-lock's
// list, which lasts for a second.
func (b bench) signals(t *testing.T, messages <-chan struct{}) (n int) {
	t.Helper()
	sleep(time.Millisecond) // for the message to arrive
	select {
	case <-messages:
		n++
	default:
	}
	if b.m.Exists(pythonList) {
		pushed, err := b.m.List(pythonList)
		check.OK(t, err)
		check.Within(t, "the list's TTL", b.m.TTL(pythonList), time.Second-10*time.Millisecond, time.Second)
		n += len(pushed)
	}
	return n
}

// A waiter of ours hears the release of PUB_SUB_LOCK.
func TestSpringMessageWakes(t *testing.T) {
	run(t, spring, func(t *testing.T, b bench) {
		check.OK(t, b.m.Set(springKey, "0b0e3a06-57b3-4d3b-9d8a-2d3c7e1c5a11"))
		b.m.SetTTL(springKey, time.Hour)
		waiting := locker.Must(retry.New(retry.Config{}))(b.Locker)
		got := make(chan *locker.Lock, 1)
		go func() { got <- locker.Must(waiting.Acquire(t.Context(), locker.Request{Name: name})) }()
		sleep(time.Minute)
		released := time.Now()
		b.m.Del(springKey)
		b.m.Publish(springChannel, springKey)
		lock := <-got
		check.Equal(t, "time from the release to the acquire", time.Since(released), 0)
		check.OK(t, lock.Release(t.Context()))
		check.OK(t, b.drv.Close()) // it ends what listens
	})
}

func TestBadSignal(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]struct {
		cfg   single.Config
		field string
	}{
		"another number":            {single.Config{Signal: 3}, "single.Config.Signal"},
		"a negative number":         {single.Config{Signal: -1}, "single.Config.Signal"},
		"Spring without a prefix":   {single.Config{Signal: single.SpringPubSub}, "single.Config.Prefix"},
		"Spring without a key":      {single.Config{Signal: single.SpringPubSub, Prefix: ":"}, "single.Config.Prefix"},
		"Spring without a colon":    {single.Config{Signal: single.SpringPubSub, Prefix: "registryKey"}, "single.Config.Prefix"},
		"python without its prefix": {single.Config{Signal: single.PythonRedisLock, Prefix: "locks:"}, "single.Config.Prefix"},
	}, func(t *testing.T, tt struct {
		cfg   single.Config
		field string
	}) {
		_, err := single.New(&faultdriver.Driver{}, tt.cfg)
		check.Is(t, err, locker.ErrInvalid)
		check.Contains(t, "the error", err.Error(), tt.field)
	})
}

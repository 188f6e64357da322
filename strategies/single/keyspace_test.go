package single_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const keyspace = "__keyspace@0__:"

// With Keyspace a waiter hears of the release of another library, and of ours as without it.
func TestKeyspaceEventsWake(t *testing.T) {
	type test struct {
		errs    []error // of the first calls that subscribe to the events
		release func(t *testing.T, b bench)
	}
	deleted := func(t *testing.T, b bench) {
		b.m.Del(name)
		b.m.Publish(keyspace+name, "del")
	}
	refused := &driver.ServerError{Text: "NOPERM No permissions to access a channel"}
	eachRun(t, single.Config{}, map[string]test{
		"of another library":                     {release: deleted},
		"of another library, no answer at first": {errs: []error{io.ErrUnexpectedEOF}, release: deleted},
		"of ours":                                {release: releaseByOurs},
		"of ours, and events are refused":        {errs: []error{refused}, release: releaseByOurs},
	}, func(t *testing.T, b bench, tt test) {
		drv := &deafDriver{Driver: b.drv, errs: tt.errs}
		l := locker.Must(single.New(drv, single.Config{Keyspace: keyspace}))
		waiting := locker.Must(retry.New(retry.Config{}))(l)
		b.acquire(t, locker.Request{TTL: time.Hour})
		got := make(chan *locker.Lock, 1)
		go func() { got <- locker.Must(waiting.Acquire(t.Context(), locker.Request{Name: name})) }()
		sleep(time.Minute)
		released := time.Now()
		tt.release(t, b)
		lock := <-got
		check.Equal(t, "time from the release to the acquire", time.Since(released), 0)
		check.OK(t, lock.Release(t.Context()))
		check.OK(t, b.drv.Close()) // it ends what listens
	})
}

// releaseByOurs ends the hold as a Holdfast without Keyspace does.
func releaseByOurs(t *testing.T, b bench) {
	t.Helper()
	locker.Must(locker.Break(t.Context(), b, name))
}

// deafDriver returns errs from its first calls that subscribe to keyspace events.
type deafDriver struct {
	*faultdriver.Driver

	errs []error
}

func (d *deafDriver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	if len(d.errs) > 0 && strings.HasPrefix(channel, keyspace) {
		err := d.errs[0]
		d.errs = d.errs[1:]
		return nil, err
	}
	return d.Driver.Subscribe(ctx, channel)
}

func TestBadKeyspace(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"__keyspace@0__", "__keyspace@00__:", "__keyspace@-1__:", "__keyspace@*__:", "__keyevent@0__:", "0",
	} {
		_, err := single.New(&faultdriver.Driver{}, single.Config{Keyspace: bad})
		check.Is(t, err, locker.ErrInvalid)
		check.Contains(t, "the error", err.Error(), "single.Config.Keyspace")
	}
}

package retry_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// During an outage an owner waits for the policy, even if its early attempts succeeded before.
func TestReentryDuringAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		r := newReentrant(s, "me")
		s.latency = ms
		l := wrap(t, r, retry.Config{Policy: constant(100 * ms)})
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx, l, locker.Request{Owner: "rival"})
		elapse(10 * ms)
		for range 2 {
			locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"}))
		}
		r.set("me", errCut)
		before := len(s.times())
		s.begin(ctx, l, locker.Request{Owner: "me"})
		check.Advance(time.Second)
		if got := len(s.times()) - before; got > 40 {
			t.Errorf("%d attempts in 1 s of an outage", got)
		}
		cancel()
	})
}

// Of the readers behind a writer of their process one tries first, whether it got in or gave up.
func TestOneReaderTriesAfterAWriter(t *testing.T) {
	bubbles(t, map[string]bool{"it gives up": false, "it gets in": true}, func(t *testing.T, s *server, gets bool) {
		h := s.hold()
		s.latency = ms
		l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
		ctx, cancel := context.WithCancel(t.Context())
		wctx, wcancel := context.WithCancel(t.Context())
		s.begin(wctx, l, locker.Request{})
		elapse(10 * ms)
		for range 1000 {
			go func() { _, _ = l.Acquire(ctx, locker.Request{Name: name, Mode: locker.Shared}) }()
		}
		elapse(10 * ms)
		before := len(s.times())
		if gets {
			s.free(h)
		} else {
			wcancel()
		}
		check.Advance(10 * ms)
		if got := len(s.times()) - before; got > 5 {
			t.Errorf("%d attempts, %d at once, while the lock is held", got, s.most[name])
		}
		cancel()
		wcancel()
	})
}

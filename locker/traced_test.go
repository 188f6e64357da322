package locker_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// A Trace added to a Lock hears of what comes after, beside the one that the Lock was made under,
// each with its own ctx.
func TestTraceLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var made, added recorder
		lock := locker.NewLock(locktrace.With(t.Context(), made.trace("")), lease.Grant{
			Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Minute),
		}, &fakeLease{})
		advance(time.Second)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		lock.Hold().Trace(ctx, added.trace(""))
		cancel()
		wantError(t, "Renew", lock.Renew(t.Context(), 0))
		if errs := lease.RenewBatch(t.Context(), []lease.Hold{lock.Hold()}); errs[0] != nil {
			t.Errorf("RenewBatch: %v", errs[0])
		}
		synctest.Wait() // it reports behind
		wantError(t, "Release", lock.Release(t.Context()))
		wantError(t, "Release", lock.Release(t.Context()), locker.ErrReleased)
		if want := []string{"acquired", "renewed", "renewed", "released"}; !slices.Equal(made.events, want) {
			t.Errorf("the Trace of the acquire heard %v, want %v", made.events, want)
		}
		if want := []string{"renewed", "renewed", "released"}; !slices.Equal(added.events, want) {
			t.Errorf("the added Trace heard %v, want %v", added.events, want)
		}
		if added.ctx.Value(key{}) != "v" || added.ctx.Err() != nil || made.ctx.Value(key{}) != nil {
			t.Error("a Trace was called with another's ctx, or with one that ended")
		}
		want := locktrace.ReleasedInfo{Source: locktrace.Source{Strategy: "test", Client: "none", Address: "nowhere:0"}, Name: "a", Mode: "exclusive", Held: time.Second}
		if added.last != want {
			t.Errorf("reported %+v, want %+v", added.last, want)
		}
	})
}

// However the adding and the end meet, the end is told once.
func TestTraceLockOfLoss(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after func(*locker.Lock)
		want          []string
	}{
		"marked before":        {before: func(l *locker.Lock) { l.Hold().MarkLost(io.EOF) }, want: []string{"lost"}},
		"past Deadline before": {before: func(*locker.Lock) { advance(time.Hour) }, want: []string{"lost"}},
		"marked after":         {after: func(l *locker.Lock) { l.Hold().MarkLost(io.EOF) }, want: []string{"lost"}},
		"nobody looks":         {after: func(*locker.Lock) { advance(time.Hour) }, want: []string{"lost"}},
		"released before":      {before: func(l *locker.Lock) { _ = l.Release(context.Background()) }, want: []string{"released"}},
		"lost and released before": {
			before: func(l *locker.Lock) { l.Hold().MarkLost(io.EOF); _ = l.Release(context.Background()) }, want: []string{"lost", "released"},
		},
		"released after losing":  {after: func(l *locker.Lock) { l.Hold().MarkLost(io.EOF); _ = l.Release(context.Background()) }, want: []string{"lost", "released"}},
		"released after, was ok": {after: func(l *locker.Lock) { _ = l.Release(context.Background()); advance(time.Hour) }, want: []string{"released"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r recorder
				lock := locker.NewLock(t.Context(), lease.Grant{
					Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Minute),
				}, &fakeLease{})
				if tt.before != nil {
					tt.before(lock)
				}
				lock.Hold().Trace(t.Context(), r.trace(""))
				if tt.after != nil {
					tt.after(lock)
				}
				synctest.Wait()
				if !slices.Equal(r.events, tt.want) {
					t.Errorf("heard %v, want %v", r.events, tt.want)
				}
			})
		})
	}
}

// What is no Lock, as a test double may return, is left alone.
func TestMiddlewareOnNoLock(t *testing.T) {
	t.Parallel()
	for _, lock := range []*locker.Lock{nil, {}} {
		lock.Hold().Trace(t.Context(), (&recorder{}).trace(""))
		lock.Hold().WrapContext(func(context.Context) context.Context { t.Error("called"); return nil })
		if source := lock.Hold().Source(); source != (locktrace.Source{}) {
			t.Errorf("comes from %+v", source)
		}
		_, cancel := lock.Context(t.Context())
		cancel()
	}
	lock := locker.NewLock(t.Context(), lease.Grant{Name: "a", Token: secret}, &fakeLease{})
	lock.Hold().Trace(t.Context(), nil)
	wantError(t, "Release", lock.Release(t.Context()))
}

// What middleware adds is in the ctx of the work; what wraps later overrules.
func TestWrapContext(t *testing.T) {
	t.Parallel()
	type inner struct{}
	type both struct{}
	lock := locker.NewLock(t.Context(), lease.Grant{Name: "a", Token: secret, Owner: "me"}, &fakeLease{})
	lock.Hold().WrapContext(func(ctx context.Context) context.Context {
		return context.WithValue(context.WithValue(ctx, inner{}, 1), both{}, 1)
	})
	lock.Hold().WrapContext(func(ctx context.Context) context.Context { return context.WithValue(ctx, both{}, 2) })
	l := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return lock, nil })
	err := locker.Do(t.Context(), l, locker.Request{Name: "a"}, func(ctx context.Context, _ *locker.Lock) error {
		if ctx.Value(inner{}) != 1 || ctx.Value(both{}) != 2 {
			t.Errorf("the work's ctx has %v and %v, want 1 and 2", ctx.Value(inner{}), ctx.Value(both{}))
		}
		if owner, ok := lease.OwnerFrom(ctx, "a"); owner != "me" || !ok {
			t.Errorf("the work's ctx has owner %q", owner)
		}
		return nil
	})
	wantError(t, "Do", err)
}

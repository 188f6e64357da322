package locker_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// A Trace added to a Lock hears of what comes after, beside the one that the Lock was made under, each with its own ctx.
func TestTraceLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var made, added recorder
		lock := locker.NewLock(locker.WithTrace(t.Context(), made.trace("")), locker.Grant{
			Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Minute),
		}, &lease{})
		advance(time.Second)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		locker.TraceLock(ctx, lock, added.trace(""))
		cancel()
		wantError(t, "Renew", lock.Renew(t.Context(), 0))
		if errs := locker.RenewBatch(t.Context(), []*locker.Lock{lock}); errs[0] != nil {
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
		want := locker.ReleasedInfo{Source: locker.Source{Strategy: "test", Client: "none", Address: "nowhere:0"}, Name: "a", Held: time.Second}
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
		"marked before":        {before: func(l *locker.Lock) { locker.MarkLost(l, io.EOF) }, want: []string{"lost"}},
		"past Deadline before": {before: func(*locker.Lock) { advance(time.Hour) }, want: []string{"lost"}},
		"marked after":         {after: func(l *locker.Lock) { locker.MarkLost(l, io.EOF) }, want: []string{"lost"}},
		"nobody looks":         {after: func(*locker.Lock) { advance(time.Hour) }, want: []string{"lost"}},
		"released before":      {before: func(l *locker.Lock) { _ = l.Release(context.Background()) }, want: []string{"released"}},
		"lost and released before": {
			before: func(l *locker.Lock) { locker.MarkLost(l, io.EOF); _ = l.Release(context.Background()) }, want: []string{"lost", "released"},
		},
		"released after losing":  {after: func(l *locker.Lock) { locker.MarkLost(l, io.EOF); _ = l.Release(context.Background()) }, want: []string{"lost", "released"}},
		"released after, was ok": {after: func(l *locker.Lock) { _ = l.Release(context.Background()); advance(time.Hour) }, want: []string{"released"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r recorder
				lock := locker.NewLock(t.Context(), locker.Grant{
					Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Minute),
				}, &lease{})
				if tt.before != nil {
					tt.before(lock)
				}
				locker.TraceLock(t.Context(), lock, r.trace(""))
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
		locker.TraceLock(t.Context(), lock, (&recorder{}).trace(""))
		locker.WrapContext(lock, func(context.Context) context.Context { t.Error("called"); return nil })
		if source := locker.SourceOf(lock); source != (locker.Source{}) {
			t.Errorf("comes from %+v", source)
		}
		_, cancel := lock.Context(t.Context())
		cancel()
	}
	lock := locker.NewLock(t.Context(), locker.Grant{Name: "a", Token: secret}, &lease{})
	locker.TraceLock(t.Context(), lock, nil)
	wantError(t, "Release", lock.Release(t.Context()))
}

// What middleware adds is in the ctx of the work; what wraps later overrules.
func TestWrapContext(t *testing.T) {
	t.Parallel()
	type inner struct{}
	type both struct{}
	lock := locker.NewLock(t.Context(), locker.Grant{Name: "a", Token: secret, Owner: "me"}, &lease{})
	locker.WrapContext(lock, func(ctx context.Context) context.Context {
		return context.WithValue(context.WithValue(ctx, inner{}, 1), both{}, 1)
	})
	locker.WrapContext(lock, func(ctx context.Context) context.Context { return context.WithValue(ctx, both{}, 2) })
	l := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return lock, nil })
	err := locker.Do(t.Context(), l, locker.Request{Name: "a"}, func(ctx context.Context, _ *locker.Lock) error {
		if ctx.Value(inner{}) != 1 || ctx.Value(both{}) != 2 {
			t.Errorf("the work's ctx has %v and %v, want 1 and 2", ctx.Value(inner{}), ctx.Value(both{}))
		}
		if owner, ok := locker.OwnerFrom(ctx, "a"); owner != "me" || !ok {
			t.Errorf("the work's ctx has owner %q", owner)
		}
		return nil
	})
	wantError(t, "Do", err)
}

package locker_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// A Trace added to a Lock hears of what comes after, beside the one that the Lock was made under,
// each with its own ctx.
func TestTraceLock(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		type key struct{}
		var made, added recorder
		lock := minute(locktrace.With(t.Context(), made.trace("")), &fakeLease{})
		check.Advance(time.Second)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		lock.Hold().Trace(ctx, added.trace(""))
		cancel()
		check.Error(t, "Renew", lock.Renew(t.Context(), 0))
		check.Error(t, "Renew of its Hold", lock.Hold().Renew(t.Context()))
		synctest.Wait() // it reports behind
		check.Error(t, "Release", lock.Release(t.Context()))
		check.Error(t, "Release", lock.Release(t.Context()), locker.ErrReleased)
		if want := []string{"Acquired", "Renewed", "Renewed", "Released"}; !slices.Equal(made.events, want) {
			t.Errorf("the Trace of the acquire heard %v, want %v", made.events, want)
		}
		check.EqualSlices(t, "the added Trace heard", added.events, []string{"Renewed", "Renewed", "Released"})
		if added.ctx.Value(key{}) != "v" || added.ctx.Err() != nil || made.ctx.Value(key{}) != nil {
			t.Error("a Trace was called with another's ctx, or with one that ended")
		}
		want := locktrace.ReleasedInfo{Source: locktrace.Source{Strategy: "test", Client: "none", Address: "nowhere:0"}, Name: "a", Mode: "exclusive", Held: time.Second}
		check.Equal[any](t, "reported", added.last, want)
	})
}

// However the adding and the end meet, the end is told once.
func TestTraceLockOfLoss(t *testing.T) {
	t.Parallel()
	type test struct {
		before, after func(*locker.Lock)
		want          []string
	}
	check.EachInFakeTime(t, map[string]test{
		"marked before":        {before: func(l *locker.Lock) { l.Hold().MarkLost(io.EOF) }, want: []string{"Lost"}},
		"past Deadline before": {before: func(*locker.Lock) { check.Advance(time.Hour) }, want: []string{"Lost"}},
		"marked after":         {after: func(l *locker.Lock) { l.Hold().MarkLost(io.EOF) }, want: []string{"Lost"}},
		"nobody looks":         {after: func(*locker.Lock) { check.Advance(time.Hour) }, want: []string{"Lost"}},
		"released before":      {before: func(l *locker.Lock) { _ = l.Release(context.Background()) }, want: []string{"Released"}},
		"lost and released before": {
			before: func(l *locker.Lock) { l.Hold().MarkLost(io.EOF); _ = l.Release(context.Background()) }, want: []string{"Lost", "Released"},
		},
		"released after losing":  {after: func(l *locker.Lock) { l.Hold().MarkLost(io.EOF); _ = l.Release(context.Background()) }, want: []string{"Lost", "Released"}},
		"released after, was ok": {after: func(l *locker.Lock) { _ = l.Release(context.Background()); check.Advance(time.Hour) }, want: []string{"Released"}},
	}, func(t *testing.T, tt test) {
		var r recorder
		lock := hold(t, &fakeLease{}, time.Minute)
		if tt.before != nil {
			tt.before(lock)
		}
		lock.Hold().Trace(t.Context(), r.trace(""))
		if tt.after != nil {
			tt.after(lock)
		}
		synctest.Wait()
		check.EqualSlices(t, "heard", r.events, tt.want)
	})
}

// What middleware adds is in the ctx of the work; what wraps later overrules.
func TestWrapContext(t *testing.T) {
	t.Parallel()
	type inner struct{}
	type both struct{}
	lock := locker.NewLock(t.Context(), lease.Grant{Name: "a", Token: secret, Owner: "me"}, &fakeLease{})
	lock.Hold().Trace(t.Context(), nil) // changes nothing
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
	check.Error(t, "Do", err)
}

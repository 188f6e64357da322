package history_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/reliability/history"
)

func from(owner string) edit { return func(e *history.Event) { e.From = owner } }

func TestHandOvers(t *testing.T) {
	t.Parallel()
	handed := func() *script { // b waits from 10 on, a hands over between 40 and 42
		return begin().acquire("a", 0, 2, fence(5)).acquire("b", 10, 43, from("a"), deadline(100), fence(6)).release("a", 40, 42)
	}
	judge(t, history.Rules{Model: history.Exclusive, HandOver: true}, []example{
		{"handed over", handed().held("b", 50).write("b", 51, 6).release("b", 60, 61).acquire("c", 62, 63, fence(9)), kept},
		{"handed over and on", handed().acquire("c", 20, 63, from("b"), deadline(100), fence(7)).release("b", 60, 62).refuse("d", 70, 71), kept},
		{"a waiter that called before the first", begin().acquire("b", 0, 43, from("a"), deadline(102)).acquire("a", 2, 4).release("a", 40, 42).held("b", 60), kept},
		{"while others are refused", handed().refuse("d", 41, 42).refuse("d", 42, 43).refuse("d", 44, 45), kept},
		{"to the end of the lease", handed().leave("b", 100).acquire("c", 100, 102, fence(7)), kept},
		{"another holds before its end", handed().acquire("c", 90, 95, fence(7)), broken},
		{"another holds in between", handed().acquire("c", 40, 41, deadline(141)).release("c", 41, 42), broken},
		{"two holders after it", handed().acquire("c", 44, 45, fence(7)), broken},
		{"the first holder is told that it is lost", handed().renew("a", 50, 52), broken},
		{"the same token twice", begin().acquire("a", 0, 2, fence(5)).acquire("b", 10, 43, from("a"), deadline(100), fence(5)).release("a", 40, 42), broken},
		{"a lower token", begin().acquire("a", 0, 2, fence(5)).acquire("b", 10, 43, from("a"), deadline(100), fence(4)).release("a", 40, 42).lose(20, 21), broken},
		{"a token of the block goes to another", handed().release("b", 60, 61).acquire("c", 62, 63, fence(6)), broken},
		{"a lease of its own", begin().acquire("a", 0, 2).acquire("b", 1, 4, from("a"), deadline(103)).release("a", 2, 4), broken},
		{"a lease that a check renewed", begin().acquire("a", 0, 2).acquire("b", 10, 43, from("a"), deadline(140)).release("a", 40, 42), kept},
		{"more than a lease", begin().acquire("a", 0, 2).acquire("b", 10, 43, from("a"), deadline(144)).release("a", 40, 42), broken},
		{"a renewed lease", begin().acquire("a", 0, 2).acquire("b", 10, 65, from("a"), deadline(160)).release("a", 60, 62), kept},
		{"a shorter lease", begin().acquire("a", 0, 2).acquire("b", 10, 43, from("a"), deadline(99)).release("a", 40, 42), broken},
		{"a lease that the first holder renewed", begin().acquire("a", 0, 2).renew("a", 30, 32).acquire("b", 10, 43, from("a"), deadline(130)).release("a", 40, 42), kept},
		{"less than the first holder's renewal", begin().acquire("a", 0, 2).renew("a", 30, 32).acquire("b", 10, 43, from("a"), deadline(100)).release("a", 40, 42), broken},
		{"to two", handed().acquire("c", 20, 44, from("a"), deadline(100), fence(7)), broken},
		{"without a release", begin().acquire("a", 0, 2).acquire("b", 10, 43, from("a"), deadline(100)), broken},
		{"a hold that was lost", begin().acquire("a", 0, 2).acquire("b", 10, 43, from("a"), deadline(100)).release("a", 40, 42, lost), broken},
		{"by nobody", begin().acquire("b", 10, 43, from("z"), deadline(100)), broken},
		{"the holder dies while it hands over", begin().acquire("a", 0, 2).acquire("b", 10, 43, from("a"), deadline(100)).release("a", 40, 0, unknown, pending).refuse("c", 50, 52), kept},
		{"the waiter dies while it is handed over", begin().acquire("a", 0, 2).renew("a", 30, 32).acquire("b", 10, 0, unknown, pending).release("a", 40, 42).refuse("c", 43, 44), kept},
	})
	judge(t, history.Rules{Model: history.Exclusive, HandOver: true, Several: true}, []example{
		{"by one whose other lock failed", begin().acquire("a", 5, 42, unknown).acquire("b", 10, 43, from("z"), deadline(100)), kept},
		{"by one whose other lock failed before", begin().acquire("a", 5, 9, unknown).acquire("b", 10, 43, from("z"), deadline(100)), broken},
		{"by nobody", begin().acquire("b", 10, 43, from("z"), deadline(100)), broken},
	})
	judge(t, history.Rules{Model: history.Exclusive, HandOver: true, Watched: true}, []example{
		{"a lease that a watchdog renewed", begin().acquire("a", 0, 2).acquire("b", 10, 43, from("a"), deadline(140)).release("a", 40, 42), kept},
	})
}

// A handed-over hold is lost with the one before.
func TestHandOversOfLostHolds(t *testing.T) {
	t.Parallel()
	handed := func() *script {
		return begin().acquire("a", 0, 2).lose(20, 21).acquire("b", 30, 43, from("a"), deadline(100)).release("a", 40, 42)
	}
	judge(t, history.Rules{Model: history.Exclusive, HandOver: true}, []example{
		{"and nobody notices", handed().held("b", 50), kept},
		{"and another holds", handed().acquire("c", 44, 45), loss},
		{"and it is told", handed().renew("b", 44, 45, lost), loss},
		{"and so is the next", handed().acquire("c", 44, 53, from("b"), deadline(100)).release("b", 50, 52).renew("c", 60, 61, lost), loss},
		{"and another held before", begin().acquire("a", 0, 2).acquire("c", 10, 11).lose(20, 21).acquire("b", 30, 43, from("a"), deadline(100)).release("a", 40, 42), broken},
		{"and its token was reserved before the next", begin().acquire("a", 0, 2, fence(5)).lose(20, 21).acquire("c", 22, 23, fence(9)).acquire("b", 30, 43, from("a"), deadline(100), fence(6)).release("a", 40, 42).write("c", 44, 9).write("b", 45, 6, refused), loss},
		{"and the next gets its token", begin().acquire("a", 0, 2, fence(5)).acquire("b", 30, 43, from("a"), deadline(100), fence(6)).release("a", 40, 42).lose(50, 51).acquire("c", 52, 53, fence(6)), broken},
		{"soon after it was handed over", handed().acquire("c", 44, 53, from("b"), deadline(100)).release("b", 50, 52).release("c", 54, 55, lost), loss},
		{"long after it was handed over", handed().acquire("c", 44, 63, from("b"), deadline(100)).release("b", 60, 62).release("c", 64, 65, lost), broken},
		{"long after it was handed over, but not for long after the loss", begin().acquire("a", 0, 2).acquire("b", 10, 43, from("a"), deadline(100)).release("a", 40, 42).lose(50, 55).acquire("c", 44, 63, from("b"), deadline(100)).release("b", 60, 62).release("c", 64, 65, lost), loss},
		{"and a resume may have ended it", handed().acquire("c", 44, 63, from("b"), deadline(100)).release("b", 60, 62).resume("d", "c", 63, 64, unknown).release("c", 65, 66, lost), kept},
		{"and a resume has ended it", handed().acquire("c", 44, 63, from("b"), deadline(100)).release("b", 60, 62).resume("d", "c", 63, 64).renew("c", 65, 66, lost), kept},
		{"but not the holds behind them", handed().release("b", 44, 45, lost).acquire("c", 300, 301).acquire("d", 302, 303), broken},
		{"lost after it, but wrong before", begin().acquire("a", 0, 2).acquire("b", 10, 43, from("a"), deadline(100)).release("a", 40, 42).acquire("c", 50, 51).lose(70, 71), broken},
	})
}

// From names the handed-over hold, unless it came to nothing.
func TestFromIsRecorded(t *testing.T) {
	t.Parallel()
	woken, attempt := locktrace.WokenInfo{Name: "n", By: locktrace.ByHandOver, From: "first"}, locktrace.AttemptInfo{Name: "n"}
	for name, want := range map[string]history.Event{
		"handed over": {From: "first"}, "attempted": {Open: true}, "woken again": {Open: true}, "never": {},
		"another name is attempted": {From: "first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := history.NewRecorder(time.Now(), nil)
			l := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				trace := locktrace.From(ctx)
				if name != "never" {
					trace.Woken(ctx, woken)
				}
				switch name {
				case "another name is attempted":
					trace.Woken(ctx, locktrace.WokenInfo{Name: "other", By: locktrace.ByTurn})
					trace.Attempt(ctx, locktrace.AttemptInfo{Name: "other"})
				case "attempted":
					trace.Attempt(ctx, attempt)
				case "woken again":
					trace.Woken(ctx, locktrace.WokenInfo{Name: "n", By: locktrace.ByTurn})
				}
				return lockertest.New().Acquire(locktrace.Without(ctx), req)
			})
			//realtime:ok a Locker in memory
			locker.Must(rec.Client(0).Acquire(t.Context(), l, locker.Request{Name: "n", TTL: time.Second}))
			events := rec.Events()
			if e := events[len(events)-1]; e.From != want.From || e.Open != want.Open {
				t.Errorf("from %q, open %v, want %+v", e.From, e.Open, want)
			}
		})
	}
}

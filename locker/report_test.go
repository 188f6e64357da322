package locker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// diary keeps what is reported, in order.
type diary struct {
	mu      sync.Mutex
	entries []string
}

func (d *diary) notef(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, fmt.Sprintf(format, args...))
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries)
}

// answering is a lease that answers each operation with err.
type answering struct{ err error }

func (a *answering) Do(_ context.Context, op lease.Op) (lease.Term, error) {
	return lease.Term{Deadline: time.Now().Add(op.TTL)}, a.err
}

// A callback that blocks delays the reports of its own lock and nothing else: neither a renewal by
// its Hold, nor the reports and the end of other locks, nor the end of the contexts of its own.
func TestBlockedReports(t *testing.T) { check.InFakeTime(t, blockedReports) }

func blockedReports(t *testing.T) {
	var told diary
	free := make(chan struct{})
	ctx := locktrace.With(t.Context(), &locktrace.Trace{
		Renewed: func(_ context.Context, info locktrace.RenewedInfo) {
			if info.Name == "blocked" {
				<-free
			}
			told.notef("%s renewed %v", info.Name, info.Err == nil)
		},
		Lost: func(_ context.Context, info locktrace.LostInfo) { told.notef("%s lost", info.Name) },
	})
	leases := map[string]*answering{}
	var locks []*locker.Lock
	for _, name := range []string{"blocked", "gone", "well"} {
		leases[name] = new(answering)
		locks = append(locks, locker.NewLock(ctx, lease.Grant{
			Name: name, Token: "t", TTL: time.Minute, Deadline: time.Now().Add(time.Minute),
		}, leases[name]))
	}
	blocked, gone, well := locks[0], locks[1], locks[2]
	var ends []context.Context
	for _, lock := range locks {
		lock.AfterDone(func(error) {
			if lock == gone {
				<-free
			}
			told.notef("%s done", lock.Name())
		})
		work, cancel := lock.Context(t.Context())
		defer cancel()
		ends = append(ends, work)
	}
	leases["gone"].err = locker.ErrNotHeld
	renew := func() {
		for _, lock := range locks {
			_ = lock.Hold().Renew(t.Context())
		}
		synctest.Wait()
	}
	renew()
	wantEnded := func(which string, ctx context.Context, want bool) {
		t.Helper()
		if (ctx.Err() != nil) != want {
			t.Errorf("the context of %q has ended: %v", which, ctx.Err())
		}
	}
	wantEnded("gone", ends[1], true)
	wantEnded("well", ends[2], false)
	for range 100 {
		check.Advance(30 * time.Second)
		renew()
	}
	check.Error(t, "blocked", blocked.Err())
	check.Error(t, "well", well.Err())
	leases["blocked"].err = locker.ErrNotHeld
	renew()
	wantEnded("blocked", ends[0], true)
	got := told.read()
	if n := slices.Index(got, "gone lost"); n < 0 || slices.Contains(got, "gone done") || slices.Contains(got, "blocked lost") {
		t.Errorf("told before it was free: %v", got[:min(len(got), 10)])
	}
	if !slices.Contains(got, "blocked done") {
		t.Error("AfterDone waits for a callback of its lock that blocks")
	}
	check.Equal(t, "reported renewals of the other lock", count(got, "well renewed true"), 102)
	close(free)
	synctest.Wait()
	got = slices.DeleteFunc(told.read(), func(s string) bool { return s[:4] != "bloc" || s == "blocked done" })
	tail := []string{"blocked lost", "blocked renewed false"}
	if n := len(got); n != 1+63+1 || !slices.Equal(got[n-2:], tail) {
		t.Errorf("%d reports of the blocked lock, the last %v; want one under way, 63 that waited, and the end %v", n, got[max(n-2, 0):], tail)
	}
	want := []string{"gone lost", "gone done", "gone renewed false"}
	if got := slices.DeleteFunc(told.read(), func(s string) bool { return s[:4] != "gone" }); len(got) < 3 || !slices.Equal(got[:3], want) {
		t.Errorf("told %v, want %v first", got, want)
	}
	_ = well.Release(t.Context())
}

func count(all []string, s string) (n int) {
	for _, one := range all {
		if one == s {
			n++
		}
	}
	return n
}

// A callback that panics keeps no other from being called, no context from ending, and no release
// from being sent.
func TestPanicInAfterDone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer   error
		end      func(lock *locker.Lock) error
		op       lease.OpKind
		reported string
	}{
		{nil, func(lock *locker.Lock) error { return lock.Release(t.Context()) }, lease.OpRelease, "released"},
		{locker.ErrNotHeld, func(lock *locker.Lock) error { return lock.Renew(t.Context(), 0) }, lease.OpRenew, "renewed"},
	} {
		var told diary
		l := refusing(tt.answer)
		lock := minute(locktrace.With(t.Context(), &locktrace.Trace{
			Renewed:  func(context.Context, locktrace.RenewedInfo) { told.notef("renewed") },
			Released: func(context.Context, locktrace.ReleasedInfo) { told.notef("released") },
		}), l)
		lock.AfterDone(func(error) { told.notef("first") })
		lock.AfterDone(func(error) { panic("out of order") })
		lock.AfterDone(func(error) { told.notef("last") })
		work, cancel := lock.Context(t.Context())
		defer cancel()
		check.Panics(t, "out of order", func() { t.Errorf("no panic, but %v", tt.end(lock)) })
		if work.Err() == nil {
			t.Error("the context has not ended")
		}
		if got, want := told.read(), []string{"first", "last", tt.reported}; !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
		if asked := l.asked(); len(asked) != 1 || asked[0].Kind != tt.op {
			t.Errorf("asked the server for %v", asked)
		}
	}
}

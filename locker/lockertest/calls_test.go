package lockertest_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestCalls(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		request := locker.Request{Name: "a", Owner: "me", Note: "why", TTL: time.Minute, Fenced: true}
		lock := acquire(t, l, request)
		_, _ = l.Acquire(t.Context(), locker.Request{Name: "a", NoWait: true})
		check.Error(t, "Renew", lock.Renew(t.Context(), time.Hour))
		check.Error(t, "Downgrade", lock.Downgrade(t.Context()))
		check.Error(t, "Upgrade", lock.Upgrade(t.Context()))
		resumed, err := locker.Resume(t.Context(), l, lock.Handle())
		check.Error(t, "Resume", err)
		inspect(t, l, "a")
		release(t, resumed)
		check.Error(t, "Release of the Lock that was taken over", lock.Release(t.Context()), locker.ErrLost)
		_ = resumed.Release(t.Context()) // it sends nothing
		_ = l.ReleaseHandle(t.Context(), lock.Handle())
		_, _ = l.Acquire(t.Context(), locker.Request{})
		acquire(t, l, request)
		_, err = locker.Break(t.Context(), l, "a")
		check.Error(t, "Break", err)

		other := l.Hold(locker.Request{Name: "b"}) // not of the program under test
		check.Error(t, "Renew", other.Renew(t.Context(), 0))
		release(t, other)

		calls := l.Calls()
		var got []string
		for _, c := range calls {
			got = append(got, c.Op)
		}
		want := []string{"acquire", "acquire", "renew", "downgrade", "upgrade", "resume", "release", "release", "release", "acquire", "acquire", "break"}
		if !slices.Equal(got, want) {
			t.Fatalf("calls %q, want %q", got, want)
		}
		if calls[0].Request != request || calls[0].Err != nil || !calls[0].At.Equal(time.Now()) {
			t.Errorf("first call %+v, want the request %+v without an error", calls[0], request)
		}
		check.Equal(t, "String", calls[0].String(), `acquire "a": ok`)
		check.Error(t, "second call", calls[1].Err, locker.ErrNotAcquired)
		if _, wrapped := errors.AsType[*locker.OpError](calls[1].Err); wrapped {
			t.Errorf("the error of a call is in an OpError: %v", calls[1].Err)
		}
		if r := calls[2].Request; r.Name != "a" || r.Owner != "me" || r.TTL != time.Hour {
			t.Errorf("renewal %+v", r)
		}
		if calls[3].Request.Mode != locker.Shared || calls[4].Request.Mode != locker.Exclusive {
			t.Errorf("conversions %+v, %+v", calls[3].Request, calls[4].Request)
		}
		check.Equal(t, "a resume without the handle", calls[5].Request.Resume.IsZero(), false)
		check.Error(t, "release of a Lock that was taken over", calls[7].Err, locker.ErrNotHeld)
		check.Error(t, "release by a handle that was used", calls[8].Err, locker.ErrNotHeld)
		check.Error(t, "bad request", calls[9].Err, locker.ErrInvalid)
	})
}

func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	for i := range 3001 {
		_, _ = l.Acquire(t.Context(), locker.Request{Name: strconv.Itoa(i)})
		if i%150 == 0 && len(l.Calls()) > 1000 {
			t.Fatalf("%d calls", len(l.Calls()))
		}
	}
	if calls := l.Calls(); len(calls) != 1000 || calls[999].Request.Name != "3000" {
		t.Errorf("%d calls, want the latest 1000", len(calls))
	}
}

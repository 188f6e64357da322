package lockertest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestSemaphore(t *testing.T) {
	t.Parallel()
	l := lockertest.NewSemaphore(2)
	lock := acquire(t, l, locker.Request{Name: "b", Owner: "one", TTL: time.Minute})
	acquire(t, l, locker.Request{Name: "b", Owner: "two", TTL: time.Hour})
	if got := inspect(t, l, "b"); got.Owner != "two" || got.Left <= time.Minute {
		t.Errorf("%+v, want the hold that lasts longest", got)
	}
	for what, tt := range map[string]struct {
		req  locker.Request
		want error
	}{
		"more permits than there are": {locker.Request{Name: "a", Permits: 3}, locker.ErrInvalid},
		"the shared mode":             {locker.Request{Name: "a", Mode: locker.Shared}, errors.ErrUnsupported},
		"a resume with other permits": {locker.Request{Name: "b", Permits: 2, Resume: lock.Handle()}, locker.ErrInvalid},
	} {
		_, err := l.Acquire(t.Context(), tt.req)
		check.Error(t, what, err, tt.want)
	}
	check.Error(t, "Downgrade", lock.Downgrade(t.Context()), errors.ErrUnsupported)
	check.Panics(t, nil, func() { lockertest.NewSemaphore(0) })
	check.Equal(t, "permits of a lock", lockertest.New().Traits().Permits, 0)
}

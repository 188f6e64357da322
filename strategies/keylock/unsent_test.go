package keylock_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// stuck is a driver that cannot send its first script within its ctx. If losesNext, it loses the
// second one's reply.
type stuck struct {
	driver.Driver
	calls     int
	losesNext bool
}

func (d *stuck) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if d.calls++; d.calls == 1 {
		<-ctx.Done()
		return driver.Reply{}, driver.NotSent(ctx.Err())
	}
	reply, err := d.Driver.Eval(ctx, s, keys, args)
	if d.calls == 2 && d.losesNext {
		return driver.Reply{}, io.EOF
	}
	return reply, err
}

// A release not sent in time is sent again. It succeeds only if the first send that may have ended
// the hold began before the Deadline.
func TestReleaseNotSentInTime(t *testing.T) {
	t.Parallel()
	type test struct {
		held      time.Duration // until the release
		losesNext bool
		want      []error
	}
	check.EachInFakeTime(t, map[string]test{
		"held":                  {held: 0},
		"held, a lost reply":    {held: 0, losesNext: true},
		"expired":               {held: 1500 * time.Millisecond, want: []error{locker.ErrLost}},
		"expired, a lost reply": {held: 1500 * time.Millisecond, losesNext: true, want: []error{locker.ErrLost}},
	}, func(t *testing.T, tt test) {
		d := &stuck{Driver: clients.OpenMemory(t, clients.NewMemory(t)), losesNext: tt.losesNext}
		l := locker.Must(single.New(d, single.Config{AttemptTimeout: time.Second, ReleaseTimeout: 10 * time.Second}))
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", TTL: 2 * time.Second}))
		time.Sleep(tt.held) //nolint:forbidigo // fake time
		wantIs(t, lock.Release(t.Context()), tt.want...)
	})
}

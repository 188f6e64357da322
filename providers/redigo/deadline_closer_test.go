package redigo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
)

// recorder is a connection that records the time of its closing.
type recorder struct {
	redis.Conn
	at chan time.Duration
	t0 time.Time
}

func (r recorder) ReceiveContext(context.Context) (any, error) {
	r.at <- time.Since(r.t0)
	return nil, context.DeadlineExceeded
}

func (recorder) DoContext(context.Context, string, ...any) (any, error) { return nil, nil }

// endsAt is a context that ends at its deadline alone.
type endsAt struct {
	context.Context
	at time.Time
}

func (e endsAt) Deadline() (time.Time, bool) { return e.at, true }

// Each connection is closed at the deadline of its call, even if one watched earlier has a later
// deadline; not if the call is over.
func TestDeadlineCloser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, start := new(deadlineCloser), time.Now()
		watch := func(after time.Duration) (*watcher, <-chan time.Duration) {
			conn := recorder{at: make(chan time.Duration, 1), t0: start}
			return s.watch(endsAt{context.Background(), start.Add(after)}, conn), conn.at
		}
		_, late := watch(3 * time.Second)
		_, soon := watch(time.Second)
		over, never := watch(time.Second)
		over.end()
		for want, shut := range map[time.Duration]<-chan time.Duration{time.Second: soon, 3 * time.Second: late} {
			check.Equal(t, "closed after", <-shut, want)
		}
		_, again := watch(4 * time.Second)
		check.Equal(t, "closed after", <-again, 4*time.Second)
		select {
		case <-never:
			t.Error("the connection of a call that is over was closed")
		default:
		}
	})
}

// If a context ends before its deadline, its connection is closed at the next look.
func TestDeadlineCloserLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, start := new(deadlineCloser), time.Now()
		ctx := bounded.New(context.Background(), time.Minute)
		conn := recorder{at: make(chan time.Duration, 1), t0: start}
		s.watch(ctx, conn)
		time.AfterFunc(lookEvery+1, ctx.Stop)
		check.Equal(t, "closed after", <-conn.at, 2*lookEvery)
	})
}

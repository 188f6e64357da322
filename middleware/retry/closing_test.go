package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// closable is a server whose driver can be closed.
type closable struct {
	*server
	ctx   context.Context //nolint:containedctx // ends at Close
	close context.CancelFunc
}

func newClosable(s *server) closable {
	c := closable{server: s}
	c.ctx, c.close = context.WithCancel(context.Background())
	s.answer = func(int, locker.Request) error {
		if c.ctx.Err() != nil {
			return driver.ErrClosed
		}
		return nil
	}
	return c
}

func (c closable) OnClose(f func()) (stop func() bool) { return context.AfterFunc(c.ctx, f) }

func TestCloseEndsWaits(t *testing.T) {
	t.Parallel()
	for what, here := range map[string]bool{"this process holds it": true, "another holds it": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				req := locker.Request{Name: name, TTL: time.Hour}
				c := newClosable(s)
				defer c.close()
				l := locker.Must(retry.New(retry.Config{Policy: constant(time.Hour)}))(c)
				holder := l
				if !here {
					s.lease, holder = time.Hour, s
				}
				lock, err := holder.Acquire(t.Context(), req)
				check.Must(t, err)
				impatient := req
				impatient.MaxWait = time.Second
				_, err = l.Acquire(t.Context(), impatient) // nobody is in a queue when it has given up
				match(t, err, []error{locker.ErrMaxWait}, nil)
				results := make(chan error, 3)
				for range cap(results) {
					go func() {
						_, err := l.Acquire(t.Context(), req)
						results <- err
					}()
				}
				synctest.Wait()
				began := time.Now()
				c.close()
				for range cap(results) {
					match(t, <-results, []error{locker.ErrClosed}, []error{locker.ErrNotAcquired})
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("the waiters returned %v after Close", took)
				}
				_, err = l.Acquire(t.Context(), req)
				match(t, err, []error{locker.ErrClosed}, nil)
				_ = lock.Release(t.Context())
			})
		})
	}
}

// Close ends the pause of a resume, which does not queue.
func TestCloseEndsPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := newClosable(s)
		defer c.close()
		closed := s.answer
		s.answer = func(n int, req locker.Request) error {
			if err := closed(n, req); err != nil {
				return err
			}
			return driver.NotSent(errors.New("refused"))
		}
		began := time.Now()
		time.AfterFunc(time.Second, c.close)
		_, err := locker.Must(retry.New(retry.Config{Policy: constant(time.Hour)}))(c).Acquire(t.Context(),
			locker.Request{Name: name, Resume: locker.NewLock(context.Background(), lease.HoldInfo{Name: name, Token: "t"}, nil).Handle()})
		match(t, err, []error{locker.ErrClosed}, nil)
		if took := time.Since(began); took != time.Second {
			t.Errorf("the resume returned after %v, Close was after 1s", took)
		}
	})
}

// Close ends the delay after a wake-up.
func TestCloseEndsTheJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := newClosable(s)
		defer c.close()
		h := s.hold()
		l := locker.Must(retry.New(retry.Config{Policy: constant(time.Hour), WakeJitter: 1 << 62}))(c)
		waiting := s.begin(t.Context(), l, locker.Request{})
		s.free(h)
		elapse(time.Second)
		c.close()
		synctest.Wait()
		waiting.wantError(t, time.Second, locker.ErrClosed)
	})
}

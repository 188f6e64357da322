package resolve_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// Contract 5: the clean-up of an acquire of unknown outcome repeats from 10 ms doubling to 1 s.
func TestCleanUp(t *testing.T) {
	t.Parallel()
	never := func(int) (bool, error) { return false, nil }
	type test struct {
		open  int
		held  bool
		reply func(n int) (bool, error)
		tries int
		last  time.Duration // at most
	}
	check.EachInFakeTime(t, map[string]test{
		"nothing open: any answer ends it": {held: true, reply: never, tries: 1},
		"closed driver":                    {open: 1, reply: func(int) (bool, error) { return false, driver.ErrClosed }, tries: 1},
		"closed client":                    {open: 1, reply: func(int) (bool, error) { return false, driver.Permanent(errRefused) }, tries: 1},
		"nothing open, an outage first": {held: true, reply: func(n int) (bool, error) {
			if n < 4 {
				return false, errCut
			}
			return false, nil
		}, tries: 4, last: 70 * time.Millisecond},
		"one open, removed at once":             {open: 1, reply: func(int) (bool, error) { return true, nil }, tries: 1},
		"one open, executed late":               {open: 1, reply: func(n int) (bool, error) { return n == 5, nil }, tries: 5, last: 150 * time.Millisecond},
		"two open, removed twice":               {open: 2, reply: func(n int) (bool, error) { return n == 2 || n == 6, nil }, tries: 6, last: 310 * time.Millisecond},
		"one open beside a hold, removed twice": {open: 1, held: true, reply: func(n int) (bool, error) { return n == 1 || n == 3, nil }, tries: 3, last: 30 * time.Millisecond},
		"open to the end":                       {open: 1, reply: never, tries: 37, last: 30 * time.Second},
	}, func(t *testing.T, tt test) {
		s := newServer(func(_ context.Context, _ string, n int) (bool, error) { return tt.reply(n) })
		r := s.residue(t, "k", tt.open, tt.held)
		s.start = time.Now()
		r.Until = time.Now().Add(resolve.OpenFor(time.Second))
		resolve.CleanUp(s, r)
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		synctest.Wait()
		if len(s.at) != tt.tries {
			t.Fatalf("tried %d times, at %v; want %d times", len(s.at), s.at, tt.tries)
		}
		if last := s.at[len(s.at)-1]; last > tt.last || tt.tries > 10 && last != tt.last {
			t.Errorf("last try at %v, want until %v", last, tt.last)
		}
		if tt.tries > 10 && !slices.Equal(s.at[:4], []time.Duration{0, 10e6, 30e6, 70e6}) {
			t.Errorf("tries at %v..., want 0, 10ms, 30ms, 70ms", s.at[:4])
		}
	})
}

// A late answer ends the clean-up, or makes it remove the hold at once.
func TestCleanUpHearsLateAnswers(t *testing.T) {
	t.Parallel()
	type test struct {
		after time.Duration
		set   bool
		err   error
		tries int
		last  time.Duration
	}
	check.EachInFakeTime(t, map[string]test{
		"never sent, known before the first try":     {after: 5e6, err: errRefused},
		"refused before the first try":               {after: 5e6},
		"refused by the server before the first try": {after: 5e6, err: serverError("LOADING")},
		"won before the first try":                   {after: 5e6, set: true, tries: 1, last: 5e6},
		"refused later":                              {after: 100e6, tries: 4, last: 90e6},
		"won later":                                  {after: 25 * time.Second, set: true, tries: 32, last: 25 * time.Second},
		"lost for good":                              {after: 5e6, err: errCut, tries: 37, last: 30 * time.Second},
	}, func(t *testing.T, tt test) {
		s := newServer(nil)
		s.late = func() (bool, error) {
			time.Sleep(tt.after + time.Second) //nolint:forbidigo // fake time
			return tt.set, tt.err
		}
		s.reply = func(context.Context, string, int) (bool, error) {
			return tt.set && time.Since(s.start) >= tt.after, nil
		}
		sends := resolve.Sends{Timeout: time.Hour, ReadLate: readLate}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check.Is(t, sends.Resolve(ctx, s.setNX), context.DeadlineExceeded)
		s.start = time.Now()
		r := s.residue(t, "k", 0, false)
		r.Sends = sends.Unanswered
		resolve.CleanUp(s, r)
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		synctest.Wait()
		if d := len(s.at) - tt.tries; d < -1 || d > 1 || tt.tries < 10 && d != 0 {
			t.Fatalf("tried %d times, at %v; want %d times", len(s.at), s.at, tt.tries)
		}
		if tt.tries > 0 && s.at[len(s.at)-1] != tt.last {
			t.Errorf("last try at %v, want %v", s.at[len(s.at)-1], tt.last)
		}
	})
}

func (s *server) setNX(ctx context.Context) error {
	_, err := s.SetNX(ctx, "", "", 0)
	return err
}

// However many residues a driver has, their clean-up costs a limited number of goroutines and of
// scripts per second, and covers each.
func TestCleanUpIsBounded(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		const n = 500
		s := newServer(func(context.Context, string, int) (bool, error) {
			time.Sleep(time.Millisecond) //nolint:forbidigo // fake time
			return false, nil
		})
		for i := range n {
			r := s.residue(t, fmt.Sprint(i), 1, false)
			r.Until = time.Now().Add(time.Minute)
			if i == 0 {
				s.start = time.Now()
			}
			resolve.CleanUp(s, r)
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // fake time
		synctest.Wait()
		check.AtMost(t, "calls at once", s.most, 128)
		for at := 15 * time.Second; at < 2*time.Minute; at += time.Second {
			check.AtMost(t, fmt.Sprintf("scripts in the second from %v on", at), s.sent(at, at+time.Second), 101)
		}
		for key, tries := range s.tries {
			check.AtLeast(t, key+": tries in a minute", tries, 8)
		}
		check.Equal(t, "residues that were tried", len(s.tries), n)
		check.Equal(t, "tries after their end", s.sent(time.Minute+4*time.Second, time.Hour), 0)
	})
}

// Residues with unanswered calls, as at a silent node of a cluster, delay no others, neither before
// their first try has ended nor later.
func TestCleanUpBesideSilence(t *testing.T) {
	t.Parallel()
	type test struct {
		residues             int
		timeout, age, within time.Duration
	}
	check.EachInFakeTime(t, map[string]test{
		"first tries": {896, 3 * time.Second, 10 * time.Millisecond, time.Second},
		"later tries": {1000, time.Second, 5 * time.Second, 10 * time.Millisecond},
	}, func(t *testing.T, tt test) {
		s := newServer(func(ctx context.Context, key string, _ int) (bool, error) {
			if key == "silent" {
				<-ctx.Done()
				return false, ctx.Err()
			}
			return true, nil
		})
		for range tt.residues {
			resolve.CleanUp(s, s.heldResidue("silent", tt.timeout, func() {}))
		}
		time.Sleep(tt.age) //nolint:forbidigo // fake time
		synctest.Wait()
		begun := time.Now()
		done := make(chan time.Duration, 1)
		resolve.CleanUp(s, s.heldResidue("healthy", tt.timeout, func() { done <- time.Since(begun) }))
		check.AtMost(t, "time until a healthy node's residue was removed", <-done, tt.within)
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
	})
}

// Close makes a clean-up try once more and waits for it. An answered try may have passed earlier
// sends, so another one follows.
func TestCleanUpEndsWithClose(t *testing.T) {
	t.Parallel()
	type test struct {
		reply func(closing bool, n int) (bool, error)
		tries int
		want  []error
	}
	check.EachInFakeTime(t, map[string]test{
		"answered":     {reply: func(bool, int) (bool, error) { return false, nil }, tries: 2},
		"not answered": {reply: func(bool, int) (bool, error) { return false, errCut }, tries: 1},
		"hanging": {reply: func(closing bool, _ int) (bool, error) {
			if closing {
				time.Sleep(time.Minute) //nolint:forbidigo // fake time
			}
			return false, nil
		}, tries: 1, want: []error{driver.ErrCleanUpUnfinished}},
	}, func(t *testing.T, tt test) {
		var closing atomic.Bool
		var n atomic.Int32
		s := newServer(func(context.Context, string, int) (bool, error) {
			return tt.reply(closing.Load(), int(n.Add(1)))
		})
		r := s.residue(t, "k", 1, false)
		r.Until = time.Now().Add(time.Minute)
		resolve.CleanUp(s, r)
		time.Sleep(5 * time.Second) //nolint:forbidigo // fake time
		synctest.Wait()
		closing.Store(true)
		n.Store(0)
		begun := time.Now()
		check.Is(t, s.Close(), tt.want...)
		check.Equal(t, "tries at Close", int(n.Load()), tt.tries)
		if took := time.Since(begun); took > 100*time.Millisecond && tt.want == nil {
			t.Errorf("Close took %v", took)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
	})
}

// A driver without background work gets its clean-up all the same, and so does an incomparable one.
func TestCleanUpOfAPlainDriver(t *testing.T) {
	t.Parallel()
	for _, odd := range []bool{false, true} {
		done := make(chan struct{})
		s := newServer(func(context.Context, string, int) (bool, error) {
			close(done)
			return true, nil
		})
		var drv driver.Driver = plain{s}
		if odd {
			drv = uncomparable{s, nil}
		}
		resolve.CleanUp(drv, s.residue(t, "k", 0, true))
		<-done
	}
}

// plain hides the driver's optional methods.
type plain struct{ driver.Driver }

type uncomparable struct {
	driver.Driver
	_ []int
}

package leader_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

var errWork = errors.New("the work failed")

// Lead's result decides whether Run campaigns again.
func TestLeadReturns(t *testing.T) {
	t.Parallel()
	type test struct {
		returns []error // of the calls of Lead
		policy  func() backoff.BackOff
		want    error // nil: Run returns nil
	}
	check.EachInFakeTime(t, map[string]test{
		"nil":                          {returns: []error{nil}},
		"an error, twice, then nil":    {returns: []error{errWork, errWork, nil}},
		"a permanent error":            {returns: []error{leader.Permanent(errWork)}, want: errWork},
		"a permanent error of backoff": {returns: []error{backoff.Permanent(errWork)}, want: errWork},
		"nothing permanent":            {returns: []error{leader.Permanent(nil)}},
		"an error, without a pause":    {returns: []error{errWork, nil}, policy: atOnce},
		"errors until the policy ends": {returns: []error{errWork, errWork, errWork}, policy: twice, want: errWork},
		"a policy that makes nothing": {
			returns: []error{errWork}, policy: func() backoff.BackOff { return nil }, want: locker.ErrInvalid,
		},
	}, func(t *testing.T, tc test) {
		l, calls, last, ends := lockertest.New(), 0, int64(0), 0
		var result error // of the latest term
		err := leader.Run(t.Context(), wrap(l), leader.Config{
			Name: name, Policy: tc.policy,
			Lead: func(_ context.Context, term int64) error {
				if calls++; term <= last {
					t.Errorf("term %d after %d", term, last)
				}
				last, result = term, tc.returns[calls-1]
				return result
			},
			OnEnd: func(term int64, err error) {
				if ends++; ends != calls || term != last || result != nil && !errors.Is(err, errWork) || (err == nil) != (result == nil) {
					t.Errorf("OnEnd(%d, %v) is call %d, after %d terms, the last of which is %d and returned %v", term, err, ends, calls, last, result)
				}
				free(t, l)
			},
		})
		check.Error(t, "Run", err, tc.want)
		if calls != len(tc.returns) || ends != calls {
			t.Errorf("Lead was called %d times, and OnEnd %d times, want %d", calls, ends, len(tc.returns))
		}
		free(t, l)
	})
}

// twice is a policy of two retries.
func twice() backoff.BackOff {
	return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 2)
}

func atOnce() backoff.BackOff { return &backoff.ZeroBackOff{} }

// free checks that nobody holds the lock.
func free(t *testing.T, l locker.Locker) {
	t.Helper()
	state, err := locker.Inspect(t.Context(), l, name)
	match(t, err)
	check.Equal(t, "held", state.Held, false)
}

// A panic of Lead, and a Goexit, step down and continue in the caller of Run.
func TestLeadPanics(t *testing.T) {
	t.Parallel()
	type test struct {
		lead func(context.Context, int64) error
		text string // in the text of the panic; "": Goexit
		want error  // matched by the panic
	}
	check.EachInFakeTime(t, map[string]test{
		"an error":       {func(context.Context, int64) error { panic(errWork) }, "the work failed", errWork},
		"another value":  {func(context.Context, int64) error { panic("oops") }, "oops", nil},
		"where it is":    {func(context.Context, int64) error { panic("oops") }, "lead_test.go", nil},
		"runtime.Goexit": {func(context.Context, int64) error { runtime.Goexit(); return nil }, "", nil},
		"of the runtime": {func(_ context.Context, term int64) error { return errors.New(string("x"[term])) }, "index out of range", nil},
	}, func(t *testing.T, tc test) {
		l := lockertest.New()
		c := locker.Must(leader.New(wrap(l), leader.Config{Name: name, Lead: tc.lead}))
		var value any
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { value = recover() }()
			t.Errorf("Run returned %v", c.Run(t.Context()))
		}()
		<-done
		if err, _ := value.(error); tc.text == "" && value != nil ||
			tc.text != "" && (err == nil || !strings.Contains(err.Error(), tc.text) || tc.want != nil && !errors.Is(err, tc.want)) {
			t.Errorf("Run panicked with %v, want %q in it, and that it matches %v", value, tc.text, tc.want)
		}
		free(t, l)
		check.Equal(t, "it leads", c.IsLeader(), false)
	})
}

// Run waits for a late Lead. Until it returns its lease is renewed, so that nobody else leads.
func TestLeadEndsLate(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		const ttl, late = 5 * time.Second, 20 * time.Second
		l := lockertest.New()
		var inside atomic.Int32
		lead := func(ctx context.Context, _ int64) error {
			check.Equal(t, "Leads at once", inside.Add(1), 1)
			defer inside.Add(-1)
			<-ctx.Done()
			time.Sleep(late) //nolint:forbidigo // fake time
			return errWork
		}
		a := run(t, wrap(l), leader.Config{TTL: ttl, Lead: lead})
		a.leads()
		b := run(t, wrap(l), leader.Config{TTL: ttl, Lead: lead})
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		stopped := time.Now()
		a.stop()
		a.isLeader(0) // although it holds the lock
		match(t, a.result(), errWork)
		check.Took(t, "the end of Run", stopped, late)
		b.leads()
		b.stop()
		match(t, b.result(), errWork)
	})
}

// If Lead ignores the end of its ctx, Run returns ErrLeadRunning, the lease runs out, another
// Candidate leads, and this one does not lead again until that Lead has returned.
func TestLeadIgnoresItsContext(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(r *runner, l *lockertest.Locker){
		"stopped":             func(r *runner, _ *lockertest.Locker) { r.stop() },
		"the lease was lost":  func(_ *runner, l *lockertest.Locker) { l.Forget(name) },
		"lost, then stopped":  func(r *runner, l *lockertest.Locker) { l.Forget(name); r.stop() },
		"stopped, after long": func(r *runner, _ *lockertest.Locker) { time.Sleep(time.Hour); r.stop() }, //nolint:forbidigo // fake time
	}, func(t *testing.T, end func(r *runner, l *lockertest.Locker)) {
		const ttl, timeout = 10 * time.Second, 3 * time.Second
		l := lockertest.New()
		release := make(chan struct{})
		var running, calls atomic.Int32
		ends := make(chan error, 1)
		onEnd := func(_ int64, err error) { ends <- err }
		a := run(t, wrap(l), leader.Config{TTL: ttl, StopTimeout: timeout, OnEnd: onEnd, Lead: func(ctx context.Context, _ int64) error {
			check.Equal(t, "Leads at once", running.Add(1), 1)
			defer running.Add(-1)
			if calls.Add(1) > 1 {
				<-ctx.Done()
				return nil
			}
			<-release
			return nil
		}})
		term := a.leads()
		b := run(t, wrap(l), leader.Config{TTL: ttl})
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		end(a, l)
		ended := time.Now()
		match(t, a.result(), leader.ErrLeadRunning)
		match(t, <-ends, leader.ErrLeadRunning)
		check.Within(t, "time until Run returned", time.Since(ended), timeout, timeout+ttl)
		a.isLeader(0)
		next := b.leads()
		if took := time.Since(ended); took > timeout+ttl+time.Second || next <= term {
			t.Errorf("term %d after %d began after %v, want %v at most", next, term, took, timeout+ttl)
		}
		a.again()
		match(t, a.result(), leader.ErrLeadRunning)

		close(release)
		synctest.Wait()
		b.isLeader(next) // the release of the old hold harms nobody
		a.again()
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		b.stop()
		match(t, b.result())
		check.AtLeast(t, "last term", a.leads(), next+1)
		a.stop()
		match(t, a.result())
	})
}

// If such a Lead returns at last while its lease runs out, the lock is released at once.
func TestLeadReturnsAtLast(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := locker.Must(single.New(clients.OpenMemory(t, clients.NewMemory(t)), single.Config{}))
		release := make(chan struct{})
		a := run(t, wrap(l), leader.Config{TTL: time.Hour, StopTimeout: time.Second, Lead: func(context.Context, int64) error {
			<-release
			return nil
		}})
		a.leads()
		a.stop()
		match(t, a.result(), leader.ErrLeadRunning)
		b := run(t, wrap(l), leader.Config{})
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		b.isLeader(0)
		close(release)
		returned := time.Now()
		b.leads()
		check.AtMost(t, "time until the next leader began", time.Since(returned), 5*time.Second)
		b.stop()
		match(t, b.result())
	})
}

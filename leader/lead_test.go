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

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

var errWork = errors.New("the work failed")

// What Lead returns decides whether Run campaigns again.
func TestLeadReturns(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		lead   func(ctx context.Context, call int) error
		policy func() backoff.BackOff
		calls  int
		want   []error
	}{
		"nil": {lead: func(context.Context, int) error { return nil }, calls: 1},
		"an error, twice, then nil": {
			lead: func(_ context.Context, call int) error {
				if call < 3 {
					return errWork
				}
				return nil
			},
			calls: 3,
		},
		"a permanent error": {
			lead: func(context.Context, int) error { return leader.Permanent(errWork) }, calls: 1, want: []error{errWork},
		},
		"a permanent error of backoff": {
			lead: func(context.Context, int) error { return backoff.Permanent(errWork) }, calls: 1, want: []error{errWork},
		},
		"nothing permanent": {lead: func(context.Context, int) error { return leader.Permanent(nil) }, calls: 1},
		"errors until the policy ends": {
			lead:   func(context.Context, int) error { return errWork },
			policy: func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 2) },
			calls:  3, want: []error{errWork},
		},
		"a policy that makes nothing": {
			lead: func(context.Context, int) error { return errWork }, policy: func() backoff.BackOff { return nil },
			calls: 1, want: []error{locker.ErrInvalid},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, calls, last, ends := lockertest.New(), 0, int64(0), 0
				var result error // of the latest term
				onEnd := func(term int64, err error) {
					if ends++; ends != calls || term != last || result != nil && !errors.Is(err, errWork) || (err == nil) != (result == nil) {
						t.Errorf("OnEnd(%d, %v) is call %d, after %d terms, the last of which is %d and returned %v", term, err, ends, calls, last, result)
					}
					free(t, l)
				}
				err := leader.Run(t.Context(), wrap(l), leader.Config{Name: name, Policy: tc.policy, OnEnd: onEnd, Lead: func(ctx context.Context, term int64) error {
					if calls++; term <= last {
						t.Errorf("term %d after %d", term, last)
					}
					last, result = term, tc.lead(ctx, calls)
					return result
				}})
				match(t, err, tc.want...)
				if calls != tc.calls || ends != calls {
					t.Errorf("Lead was called %d times, and OnEnd %d times, want %d", calls, ends, tc.calls)
				}
				free(t, l)
			})
		})
	}
}

// free checks that nobody holds the lock.
func free(t *testing.T, l locker.Locker) {
	t.Helper()
	state, err := locker.Inspect(t.Context(), l, name)
	match(t, err)
	if state.Held {
		t.Errorf("the state is %+v, want that nobody holds", state)
	}
}

// A panic of Lead, and a Goexit, step down and continue in the caller of Run.
func TestLeadPanics(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		lead func(context.Context, int64) error
		want string // in the text of the panic; "": Goexit
	}{
		"an error":       {func(context.Context, int64) error { panic(errWork) }, "the work failed"},
		"another value":  {func(context.Context, int64) error { panic("oops") }, "oops"},
		"where it is":    {func(context.Context, int64) error { panic("oops") }, "lead_test.go"},
		"runtime.Goexit": {func(context.Context, int64) error { runtime.Goexit(); return nil }, ""},
		"of the runtime": {func(_ context.Context, term int64) error { return errors.New(string("x"[term])) }, "index out of range"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := lockertest.New()
				c := locker.Must(leader.New(wrap(l), leader.Config{Name: name, Lead: tc.lead}))
				var value any
				returned := false
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { value = recover() }()
					_ = c.Run(t.Context())
					returned = true
				}()
				<-done
				err, _ := value.(error)
				switch {
				case returned:
					t.Error("Run returned")
				case tc.want == "" && value != nil:
					t.Errorf("Run panicked with %v", value)
				case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("Run panicked with %v, want %q in it", value, tc.want)
				case what == "an error" && !errors.Is(err, errWork):
					t.Errorf("the panic's %v does not match the error", err)
				}
				free(t, l)
				match(t, c.IsLeader(t.Context()), leader.ErrNotLeader)
			})
		})
	}
}

// A Lead that ends late is waited for. Until it returns its lease is renewed, so that nobody else
// leads.
func TestLeadEndsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl, late = 5 * time.Second, 20 * time.Second
		l := lockertest.New()
		var inside atomic.Int32
		lead := func(ctx context.Context, _ int64) error {
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d lead", n)
			}
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
		if took := time.Since(stopped); took != late {
			t.Errorf("Run returned after %v, want %v", took, late)
		}
		b.leads()
		b.stop()
		match(t, b.result(), errWork)
	})
}

// A Lead that ignores the end of its ctx: Run returns and says so, the lease runs out, another
// Candidate leads, and this one does not lead again until that Lead has returned.
func TestLeadIgnoresItsContext(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(r *runner, l *lockertest.Locker){
		"stopped":             func(r *runner, _ *lockertest.Locker) { r.stop() },
		"the lease was lost":  func(_ *runner, l *lockertest.Locker) { l.Forget(name) },
		"lost, then stopped":  func(r *runner, l *lockertest.Locker) { l.Forget(name); r.stop() },
		"stopped, after long": func(r *runner, _ *lockertest.Locker) { time.Sleep(time.Hour); r.stop() }, //nolint:forbidigo // fake time
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const ttl, timeout = 10 * time.Second, 3 * time.Second
				l := lockertest.New()
				release := make(chan struct{})
				var running, calls atomic.Int32
				ends := make(chan error, 1)
				onEnd := func(_ int64, err error) { ends <- err }
				a := run(t, wrap(l), leader.Config{TTL: ttl, StopTimeout: timeout, OnEnd: onEnd, Lead: func(ctx context.Context, _ int64) error {
					if n := running.Add(1); n != 1 {
						t.Errorf("Lead runs %d times at once", n)
					}
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
				if took := time.Since(ended); took < timeout || took > timeout+ttl {
					t.Errorf("Run returned after %v, want %v", took, timeout)
				}
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
				if last := a.leads(); last <= next {
					t.Errorf("term %d after %d", last, next)
				}
				a.stop()
				match(t, a.result())
			})
		})
	}
}

// If such a Lead returns at last while its lease runs out, the lock is released at once.
func TestLeadReturnsAtLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		if took := time.Since(returned); took > 5*time.Second {
			t.Errorf("the next leader began after %v", took)
		}
		b.stop()
		match(t, b.result())
	})
}

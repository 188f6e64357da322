package outcome_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errCut     = errors.New("EOF")
	errRefused = driver.NotSent(errors.New("connection refused"))
)

func serverError(text string) error { return driver.NewServerError(text, errors.New(text)) }

// script is a command that gets these answers in turn, the last one for ever. A nil answer ends it.
type script struct {
	answers []error
	sentAt  []time.Time
	hang    bool // every send hangs until its ctx ends
}

func (s *script) Send(ctx context.Context) error {
	s.sentAt = append(s.sentAt, time.Now())
	if s.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	i := min(len(s.sentAt), len(s.answers)) - 1
	return s.answers[i]
}

func TestResolve(t *testing.T) {
	t.Parallel()
	noperm, loading, again := serverError("NOPERM no"), serverError("LOADING wait"), serverError("TRYAGAIN moving")
	odd := serverError("ERR odd")
	halfway := serverError("ERR ACL failure in script: User app has no permissions to run the 'pexpireat' command")
	tests := []struct {
		name     string
		answers  []error
		n, open  int
		want     []error // what the error matches; none: nil
		wantNot  []error
		cancelIn time.Duration
	}{
		{name: "answered", answers: []error{nil}, n: 1},
		{name: "cut once, then answered", answers: []error{errCut, nil}, n: 2, open: 1},
		{name: "never sent is known", answers: []error{errRefused}, n: 1, want: []error{driver.ErrNotSent}, wantNot: []error{locker.ErrUnknownOutcome}},
		{name: "refused by the server is known", answers: []error{loading}, n: 1, want: []error{loading}, wantNot: []error{locker.ErrUnknownOutcome}},
		{name: "an unknown server error is open", answers: []error{odd, nil}, n: 2, open: 1},
		{name: "a script stopped in its middle is not repeated", answers: []error{halfway}, n: 1, want: []error{locker.ErrUnknownOutcome, halfway}},
		{name: "a slot on the move passes", answers: []error{again, again, nil}, n: 3},
		{name: "open, then an outage, then answered", answers: []error{errCut, errRefused, loading, nil}, n: 4, open: 1},
		{
			name: "open, then what does not heal", answers: []error{errCut, noperm}, n: 2, open: 1,
			want: []error{locker.ErrUnknownOutcome, noperm},
		},
		{
			name: "open to the end of the limit", answers: []error{errCut}, n: -1, open: -1,
			want: []error{locker.ErrUnknownOutcome, errCut}, wantNot: []error{context.Canceled},
		},
		{
			name: "open when ctx ends", answers: []error{errCut}, n: -1, open: -1, cancelIn: 3 * time.Second,
			want: []error{locker.ErrUnknownOutcome, errCut, context.Canceled},
		},
		{
			name: "a slot that moves for ever, until ctx ends", answers: []error{again}, n: -1, cancelIn: 3 * time.Second,
			want: []error{context.Canceled}, wantNot: []error{locker.ErrUnknownOutcome},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancelIn > 0 {
					time.AfterFunc(tt.cancelIn, cancel)
				}
				sends := outcome.Sends{Timeout: time.Second, Limit: 20 * time.Second}
				cmd := &script{answers: tt.answers}
				start := time.Now()
				err := sends.Resolve(ctx, cmd)
				if len(tt.want) == 0 && err != nil {
					t.Errorf("error %v, want none", err)
				}
				for _, want := range tt.want {
					if !errors.Is(err, want) {
						t.Errorf("error %v does not match %v", err, want)
					}
				}
				for _, not := range tt.wantNot {
					if errors.Is(err, not) {
						t.Errorf("error %v matches %v", err, not)
					}
				}
				if tt.n >= 0 && (sends.N != tt.n || sends.Open != tt.open) {
					t.Errorf("%d sends, %d open; want %d, %d", sends.N, sends.Open, tt.n, tt.open)
				}
				if sends.N != len(cmd.sentAt) || !sends.First.Equal(cmd.sentAt[0]) || !sends.Last.Equal(cmd.sentAt[len(cmd.sentAt)-1]) {
					t.Errorf("sends %d, first %v, last %v; want what was sent: %v", sends.N, sends.First, sends.Last, cmd.sentAt)
				}
				if took := time.Since(start); tt.cancelIn > 0 && took != tt.cancelIn {
					t.Errorf("returned %v after the start, want when ctx ended, %v", took, tt.cancelIn)
				}
			})
		})
	}
}

// Contract 4: AttemptTimeout bounds each send, also under a context that never ends.
func TestResolveBoundsEachSend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sends := outcome.Sends{Timeout: time.Second, Limit: 3 * time.Second}
		cmd := &script{hang: true}
		err := sends.Resolve(context.Background(), cmd)
		if !errors.Is(err, locker.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want an unknown outcome because of a deadline", err)
		}
		if sends.N != 3 || sends.Open != 3 {
			t.Errorf("%d sends, %d open, want 3 and 3", sends.N, sends.Open)
		}
	})
}

// Contract 7: a cancelled context does not stop the first send, and there is no second.
func TestResolvePatience(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, answer := range []error{nil, errCut} {
		sends := outcome.Sends{Timeout: time.Second, Patience: over}
		err := sends.Resolve(context.Background(), &script{answers: []error{answer}})
		if sends.N != 1 || (err == nil) != (answer == nil) {
			t.Errorf("%d sends, error %v after the answer %v", sends.N, err, answer)
		}
		if answer != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("error %v does not tell that the context had ended", err)
		}
	}
}

func TestEndedTellsTheCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, locker.ErrMaxWait)
	defer cancel()
	<-ctx.Done()
	if err := outcome.Ended(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, locker.ErrMaxWait) {
		t.Errorf("error %v, want ctx's error and its cause", err)
	}
	if err := outcome.Ended(t.Context()); err != nil {
		t.Errorf("error %v of a context that lasts", err)
	}
}

// backgrounder is a driver that only looks after background work.
type backgrounder struct {
	driver.Driver
	driver.Base
}

func (b *backgrounder) Close() error { return b.Shutdown(nil) }

// deletions answers the tries of a clean-up and notes when they came.
type deletions struct {
	start time.Time
	at    []time.Duration
	reply func(n int) (bool, error)
}

func (d *deletions) try(context.Context) (bool, error) {
	d.at = append(d.at, time.Since(d.start))
	return d.reply(len(d.at))
}

// Contract 5: the clean-up of an open acquire repeats from 10 ms doubling to 1 s.
func TestCleanUp(t *testing.T) {
	t.Parallel()
	never := func(int) (bool, error) { return false, nil }
	tests := []struct {
		name  string
		open  int
		reply func(n int) (bool, error)
		tries int
		last  time.Duration // at most
	}{
		{name: "nothing open: any answer ends it", reply: never, tries: 1},
		{name: "nothing open, an outage first", reply: func(n int) (bool, error) {
			if n < 4 {
				return false, errCut
			}
			return false, nil
		}, tries: 4, last: 70 * time.Millisecond},
		{name: "one open, deleted at once", open: 1, reply: func(int) (bool, error) { return true, nil }, tries: 1},
		{name: "one open, executed late", open: 1, reply: func(n int) (bool, error) { return n == 5, nil }, tries: 5, last: 150 * time.Millisecond},
		{name: "two open, deleted twice", open: 2, reply: func(n int) (bool, error) { return n == 2 || n == 6, nil }, tries: 6, last: 310 * time.Millisecond},
		{name: "open to the end", open: 1, reply: never, tries: -1, last: 30 * time.Second},
		{name: "closed driver", open: 1, reply: func(int) (bool, error) { return false, driver.ErrClosed }, tries: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &deletions{start: time.Now(), reply: tt.reply}
				outcome.CleanUp(new(backgrounder), outcome.Residue{
					Open: tt.open, Until: time.Now().Add(outcome.OpenFor(time.Second)), Timeout: time.Second, Delete: d.try,
				})
				time.Sleep(time.Minute) //nolint:forbidigo // fake time
				synctest.Wait()
				if tt.tries >= 0 && len(d.at) != tt.tries {
					t.Errorf("tried %d times, at %v; want %d times", len(d.at), d.at, tt.tries)
				}
				if last := d.at[len(d.at)-1]; last > tt.last || tt.tries < 0 && last < tt.last-2*time.Second {
					t.Errorf("last try at %v, want until %v", last, tt.last)
				}
				if tt.tries < 0 && !slices.Equal(d.at[:4], []time.Duration{0, 10e6, 30e6, 70e6}) {
					t.Errorf("tries at %v..., want 0, 10ms, 30ms, 70ms", d.at[:4])
				}
			})
		})
	}
}

// Close makes a clean-up try once more and waits for it.
func TestCleanUpEndsWithClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		drv := new(backgrounder)
		d := &deletions{start: time.Now(), reply: func(int) (bool, error) { return false, nil }}
		outcome.CleanUp(drv, outcome.Residue{Open: 1, Until: time.Now().Add(time.Minute), Timeout: time.Second, Delete: d.try})
		time.Sleep(5 * time.Second) //nolint:forbidigo // fake time
		synctest.Wait()
		before := len(d.at)
		if err := drv.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if len(d.at) != before+1 {
			t.Errorf("%d tries at Close, want one more", len(d.at)-before)
		}
		if took := time.Since(d.start); took != 5*time.Second {
			t.Errorf("Close waited until %v", took)
		}
	})
}

// A driver that looks after no background work gets its clean-up all the same.
func TestCleanUpOfAPlainDriver(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	outcome.CleanUp(plain{}, outcome.Residue{Until: time.Now(), Timeout: time.Second, Delete: func(context.Context) (bool, error) {
		close(done)
		return true, nil
	}})
	<-done
}

type plain struct{ driver.Driver }

package resolve_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errCut     = errors.New("EOF")
	errRefused = driver.NotSent(errors.New("connection refused"))
)

func serverError(text string) error { return &driver.ServerError{Text: text, Err: errors.New(text)} }

// errHang stands for no answer: the send lasts until its ctx ends.
var errHang = errors.New("no answer")

// script is a command that gets these answers in turn, the last one for ever. A nil answer ends it.
type script struct {
	answers []error
	sentAt  []time.Time
}

func (s *script) send(ctx context.Context) error {
	s.sentAt = append(s.sentAt, time.Now())
	err := s.answers[min(len(s.sentAt), len(s.answers))-1]
	if errors.Is(err, errHang) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func TestResolve(t *testing.T) {
	t.Parallel()
	unknown := []error{locker.ErrUnknownOutcome}
	noperm, loading, again := serverError("NOPERM no"), serverError("LOADING wait"), serverError("TRYAGAIN moving")
	odd, late := serverError("ERR odd"), driver.NotSent(context.DeadlineExceeded)
	halfway := serverError("ERR ACL failure in script: User app has no permissions to run the 'pexpireat' command")
	type test struct {
		answers  []error
		n, open  int
		want     []error // matched by the error; none: nil
		wantNot  []error
		cancelIn time.Duration
		release  bool          // ctx is the patience alone
		over     bool          // ctx has ended before
		limit    time.Duration // 0: 20 s
	}
	check.EachInFakeTime(t, map[string]test{
		"answered":                                {answers: []error{nil}, n: 1},
		"cut once, then answered":                 {answers: []error{errCut, nil}, n: 2, open: 1},
		"never sent is known":                     {answers: []error{errRefused}, n: 1, want: []error{driver.ErrNotSent}, wantNot: unknown},
		"refused by the server is known":          {answers: []error{loading}, n: 1, want: []error{loading}, wantNot: unknown},
		"an unknown server error is open":         {answers: []error{odd, nil}, n: 2, open: 1},
		"a script stopped midway is not repeated": {answers: []error{halfway}, n: 1, want: []error{locker.ErrUnknownOutcome, halfway}},
		"a slot on the move passes":               {answers: []error{again, again, nil}, n: 3},
		"open, then an outage, then answered":     {answers: []error{errCut, errRefused, loading, nil}, n: 4, open: 1},
		"open, then what does not heal": {
			answers: []error{errCut, noperm}, n: 2, open: 1,
			want: []error{locker.ErrUnknownOutcome, noperm},
		},
		"open to the end of the limit": {
			answers: []error{errCut}, n: -1, open: -1,
			want: []error{locker.ErrUnknownOutcome, errCut}, wantNot: []error{context.Canceled},
		},
		"open when ctx ends": {
			answers: []error{errCut}, n: -1, open: -1, cancelIn: 3 * time.Second,
			want: []error{locker.ErrUnknownOutcome, errCut, context.Canceled},
		},
		"a slot that moves for ever, until ctx ends": {
			answers: []error{again}, n: -1, cancelIn: 3 * time.Second,
			want: []error{context.Canceled}, wantNot: []error{locker.ErrUnknownOutcome},
		},
		// Contract 4: AttemptTimeout bounds each send, even under a context without end.
		"no answer": {
			answers: []error{errHang}, limit: 3 * time.Second, n: 3, open: 3,
			want: []error{locker.ErrUnknownOutcome, context.DeadlineExceeded},
		},
		// Contract 7: a cancelled context does not stop the first send, and there is no second.
		"impatient, answered": {answers: []error{nil}, release: true, over: true, n: 1},
		"impatient, cut":      {answers: []error{errCut}, release: true, over: true, n: 1, open: 1, want: []error{context.Canceled}},
		// Only a release is resent after a timeout without a send: its caller cannot repeat it.
		"unsent in time":               {answers: []error{late}, n: 1, want: []error{late}, wantNot: unknown},
		"unsent in time, sent at last": {release: true, answers: []error{late, late, nil}, n: 3},
		"unsent in time, then refused": {release: true, answers: []error{late, errRefused}, n: 2, want: []error{errRefused}, wantNot: unknown},
		"unsent in time, open at last": {release: true, answers: []error{late, errCut, late, nil}, n: 4, open: 1},
		"unsent to the end of the limit": {
			release: true, answers: []error{late}, n: -1,
			want: []error{driver.ErrNotSent, context.DeadlineExceeded}, wantNot: unknown,
		},
		"unsent until patience ends": {
			release: true, answers: []error{late}, n: -1, cancelIn: 3 * time.Second,
			want: []error{driver.ErrNotSent, context.Canceled}, wantNot: unknown,
		},
	}, func(t *testing.T, tt test) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if tt.cancelIn > 0 {
			time.AfterFunc(tt.cancelIn, cancel)
		}
		if tt.over {
			cancel()
		}
		sends := resolve.Sends{Timeout: time.Second, Limit: cmp.Or(tt.limit, 20*time.Second)}
		if tt.release {
			sends.Patience, ctx = ctx, context.Background()
		}
		cmd := &script{answers: tt.answers}
		start := time.Now()
		err := sends.Resolve(ctx, cmd.send)
		check.Is(t, err, tt.want...)
		check.IsNot(t, err, tt.wantNot...)
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
}

// An answered command allocates the context of its send only: a driver may keep it.
func TestResolveAllocates(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	got := testing.AllocsPerRun(100, func() {
		var cmd struct {
			resolve.Sends
			answer error
		}
		cmd.Timeout, cmd.ReadLate = time.Second, readLate
		_ = cmd.Resolve(ctx, func(context.Context) error { return cmd.answer })
	})
	check.Equal(t, "allocations", got, 1)
}

// early is a context whose timer fires after its Deadline, as on a busy machine.
type early struct {
	context.Context
	by time.Duration
}

func (e early) Deadline() (time.Time, bool) {
	end, ok := e.Context.Deadline()
	return end.Add(-e.by), ok
}

// If a client notices the Deadline before the context's timer, the error still has the context's
// cause.
func TestResolveAfterTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const late = 20 * time.Millisecond
		bounded, cancel := context.WithTimeoutCause(t.Context(), late, locker.ErrMaxWait)
		defer cancel()
		sends := resolve.Sends{Timeout: time.Second, Limit: time.Minute}
		err := sends.Resolve(early{bounded, late}, (&script{answers: []error{driver.NotSent(context.DeadlineExceeded)}}).send)
		check.Is(t, err, locker.ErrMaxWait, driver.ErrNotSent)
		check.IsNot(t, err, locker.ErrUnknownOutcome)
	})
}

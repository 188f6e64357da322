package resolve_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

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

func (s *script) Send(ctx context.Context) error {
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
	noperm, loading, again := serverError("NOPERM no"), serverError("LOADING wait"), serverError("TRYAGAIN moving")
	odd := serverError("ERR odd")
	over, end := context.WithCancel(context.Background())
	end()
	halfway := serverError("ERR ACL failure in script: User app has no permissions to run the 'pexpireat' command")
	tests := []struct {
		name     string
		answers  []error
		n, open  int
		want     []error // what the error matches; none: nil
		wantNot  []error
		cancelIn time.Duration
		patience context.Context //nolint:containedctx // of Sends; nil: ctx
		limit    time.Duration   // 0: 20 s
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
		// Contract 4: AttemptTimeout bounds each send, also under a context that never ends.
		{
			name: "no answer", answers: []error{errHang}, limit: 3 * time.Second, n: 3, open: 3,
			want: []error{locker.ErrUnknownOutcome, context.DeadlineExceeded},
		},
		// Contract 7: a cancelled context does not stop the first send, and there is no second.
		{name: "impatient, answered", answers: []error{nil}, patience: over, n: 1},
		{name: "impatient, cut", answers: []error{errCut}, patience: over, n: 1, open: 1, want: []error{context.Canceled}},
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
				sends := resolve.Sends{Timeout: time.Second, Limit: cmp.Or(tt.limit, 20*time.Second), Patience: tt.patience}
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

// Only a release, which its caller cannot repeat, is resent after a timeout without a send.
func TestResolveUnsentInTime(t *testing.T) {
	t.Parallel()
	late := driver.NotSent(context.DeadlineExceeded)
	for _, tt := range []struct {
		name     string
		answers  []error
		patient  bool
		cancelIn time.Duration
		n        int
		want     []error // what the error matches; none: nil
	}{
		{name: "sent at last", patient: true, answers: []error{late, late, nil}, n: 3},
		{name: "refused at last", patient: true, answers: []error{late, errRefused}, n: 2, want: []error{errRefused}},
		{
			name: "open at last", patient: true, answers: []error{late, errCut, late, nil}, n: 4,
		},
		{
			name: "to the end of the limit", patient: true, answers: []error{late}, n: -1,
			want: []error{driver.ErrNotSent, context.DeadlineExceeded},
		},
		{
			name: "until patience ends", patient: true, answers: []error{late}, n: -1, cancelIn: 3 * time.Second,
			want: []error{driver.ErrNotSent, context.Canceled},
		},
		{name: "without patience", answers: []error{late}, n: 1, want: []error{late}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancelIn > 0 {
					time.AfterFunc(tt.cancelIn, cancel)
				}
				sends := resolve.Sends{Timeout: time.Second, Limit: 20 * time.Second}
				if tt.patient {
					sends.Patience = ctx
				}
				err := sends.Resolve(context.Background(), &script{answers: tt.answers})
				if (err == nil) != (len(tt.want) == 0) || errors.Is(err, locker.ErrUnknownOutcome) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				for _, want := range tt.want {
					if !errors.Is(err, want) {
						t.Errorf("error %v does not match %v", err, want)
					}
				}
				if tt.n >= 0 && sends.N != tt.n {
					t.Errorf("%d sends, want %d", sends.N, tt.n)
				}
			})
		})
	}
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

// A client that notices the Deadline before the context's timer does not hide why the context ends.
func TestResolveAfterTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const late = 20 * time.Millisecond
		bounded, cancel := context.WithTimeoutCause(t.Context(), late, locker.ErrMaxWait)
		defer cancel()
		sends := resolve.Sends{Timeout: time.Second, Limit: time.Minute}
		err := sends.Resolve(early{bounded, late}, &script{answers: []error{driver.NotSent(context.DeadlineExceeded)}})
		if !errors.Is(err, locker.ErrMaxWait) || !errors.Is(err, driver.ErrNotSent) || errors.Is(err, locker.ErrUnknownOutcome) {
			t.Errorf("error %v, want one that was not sent because of MaxWait", err)
		}
	})
}

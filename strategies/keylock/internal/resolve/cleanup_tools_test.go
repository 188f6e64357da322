package resolve_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

var removal = driver.NewScript("remove")

// server is a driver that answers and records the tries of clean-ups.
type server struct {
	adapter.Base
	reply func(ctx context.Context, key string, n int) (bool, error)
	late  func() (bool, error) // result of SetNX after its ctx
	start time.Time

	mu    sync.Mutex
	at    []time.Duration
	tries map[string]int
	calls int // under way
	most  int
}

func newServer(reply func(ctx context.Context, key string, n int) (bool, error)) *server {
	return &server{reply: reply, start: time.Now(), tries: map[string]int{}}
}

func (s *server) Subscribe(context.Context, string) (driver.Subscription, error) {
	return nil, errors.ErrUnsupported
}

func (s *server) Info() driver.Info { return driver.Info{} }
func (s *server) Close() error      { return s.Shutdown(nil) }

func (s *server) SetNX(ctx context.Context, _, _ string, _ time.Duration) (bool, error) {
	return adapter.Await(ctx, s.late)
}

func (s *server) Eval(ctx context.Context, _ *driver.Script, keys, _ []string) (driver.Reply, error) {
	if err := s.CheckOpen(); err != nil {
		return driver.Reply{}, err
	}
	s.mu.Lock()
	s.at = append(s.at, time.Since(s.start))
	s.tries[keys[0]]++
	n := s.tries[keys[0]]
	s.calls++
	s.most = max(s.most, s.calls)
	s.mu.Unlock()
	removed, err := s.reply(ctx, keys[0], n)
	s.mu.Lock()
	s.calls--
	s.mu.Unlock()
	if err != nil {
		return driver.Reply{}, err
	}
	return driver.NewReply(map[bool]int{true: 1}[removed])
}

// sent counts the tries from from until to.
func (s *server) sent(from, to time.Duration) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.at {
		if from <= at && at < to {
			n++
		}
	}
	return n
}

// residue is the possible result of open sends of unknown outcome, with a hold beside it if held.
func (s *server) residue(t *testing.T, key string, open int, held bool) resolve.Residue {
	t.Helper()
	cmd := &script{answers: append(slices.Repeat([]error{errCut}, open), nil)}
	sends := resolve.Sends{Timeout: time.Second, ReadLate: readLate}
	check.Must(t, sends.Resolve(t.Context(), cmd.send))
	if sends.Unanswered == nil {
		sends.Unanswered = new(resolve.Unanswered)
	}
	if held {
		sends.Unanswered.Held()
	}
	return s.residueOf(sends.Unanswered, key, time.Second, func() {})
}

// heldResidue is the residue of a known hold.
func (s *server) heldResidue(key string, timeout time.Duration, removed func()) resolve.Residue {
	u := new(resolve.Unanswered)
	u.Held()
	return s.residueOf(u, key, timeout, removed)
}

func (s *server) residueOf(u *resolve.Unanswered, key string, timeout time.Duration, removed func()) resolve.Residue {
	return resolve.Residue{
		Sends: u, Until: time.Now().Add(resolve.OpenFor(time.Second)), Timeout: timeout,
		Remove: func(ctx context.Context) (bool, error) {
			reply, err := s.Eval(ctx, removal, []string{key}, nil)
			if err != nil {
				return false, err
			}
			n, err := reply.Int(0)
			if n == 1 {
				removed()
			}
			return n == 1, err
		},
	}
}

// readLate reads late answers to a SET NX.
func readLate(v any) resolve.Verdict {
	switch v {
	case true:
		return resolve.Acquired
	case false:
		return resolve.Refused
	}
	return resolve.Unclear
}

package vault_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/integrations/internal/adaptertest"
	"github.com/holdfast-go/holdfast/examples/integrations/vault"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key = "core/lock" // as Vault locks it

	patience = 2 * time.Minute
)

func newBackend(t *testing.T, l locker.Locker, req locker.Request) *vault.Backend {
	t.Helper()
	storage := locker.Must(inmem.NewInmem(nil, hclog.NewNullLogger()))
	return vault.New(storage, l, req)
}

func lockWith(t *testing.T, b *vault.Backend, value string) physical.Lock {
	t.Helper()
	l := locker.Must(b.LockWith(key, value))
	return l
}

func TestBackend(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, key, func(ctx context.Context, l locker.Locker, req locker.Request) adaptertest.Mutex {
		lock := lockWith(t, newBackend(t, l, req), "node")
		return adaptertest.Mutex{
			Lock: func() error {
				lost, err := lock.Lock(ctx.Done())
				if lost == nil && err == nil {
					return ctx.Err()
				}
				return err
			},
			Unlock: lock.Unlock,
		}
	})
}

// Vault's own tests of backends.
func TestUpstream(t *testing.T) {
	t.Parallel()
	s := adaptertest.Start(t)
	b := newBackend(t, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	other := newBackend(t, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	physical.ExerciseBackend(t, b)
	physical.ExerciseBackend_ListPrefix(t, b)
	physical.ExerciseHABackend(t, b, other) // two nodes
	physical.ExerciseHABackend(t, b, b)     // one node twice
	s.Empty()
}

// A node learns of the loss of its lock, and another one becomes active.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	type test struct {
		lose func(*testing.T, *adaptertest.Server) error
	}
	check.Each(t, map[string]test{
		"its key is gone": {func(t *testing.T, s *adaptertest.Server) error {
			s.MustCommand(t, "DEL", key)
			return nil
		}},
		"the server does not answer": {func(_ *testing.T, s *adaptertest.Server) error { return s.Freeze() }},
	}, func(t *testing.T, c test) {
		s, req := adaptertest.Start(t), locker.Request{TTL: 30 * time.Second}
		active := lockWith(t, newBackend(t, s.Process(holdfast.Config{}, single.Config{}), req), "active")
		standby := lockWith(t, newBackend(t, s.Process(holdfast.Config{}, single.Config{}), locker.Request{}), "standby")
		lost := locker.Must(active.Lock(nil))
		check.Must(t, c.lose(t, s))
		select {
		case <-lost:
		case <-time.After(patience):
			t.Fatal("the loss is not reported")
		}
		check.Must(t, s.Thaw())
		locker.Must(standby.Lock(nil))
		check.Is(t, active.Unlock(), locker.ErrLost)
		if held, value, err := active.Value(); !held || value != "standby" || err != nil {
			t.Errorf("Value: %t, %q, %v, want it held by the standby", held, value, err)
		}
		check.OK(t, standby.Unlock())
		if held, value, err := active.Value(); held || value != "" || err != nil {
			t.Errorf("Value: %t, %q, %v, want it free", held, value, err)
		}
		s.Empty()
	})
}

// With FailFast, a standby learns of an outage.
func TestFailFast(t *testing.T) {
	t.Parallel()
	s := adaptertest.Start(t)
	l := lockWith(t, newBackend(t, s.Process(holdfast.Config{
		Retry: retry.Config{FailFast: true},
	}, single.Config{AttemptTimeout: 300 * time.Millisecond}), locker.Request{}), "node")
	check.Must(t, s.Freeze())
	if lost, err := l.Lock(nil); lost != nil || err == nil || errors.Is(err, locker.ErrNotAcquired) {
		t.Errorf("Lock in an outage: %v, want an error that does not match %q", err, locker.ErrNotAcquired)
	}
	if held, _, err := l.Value(); held || err == nil {
		t.Errorf("Value in an outage: %t, %v", held, err)
	}
	check.Must(t, s.Thaw())
	s.Empty()
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	s := adaptertest.Start(t)
	b := newBackend(t, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	check.Error(t, "LockWith without a key", check.ErrOf(b.LockWith("", "node")), locker.ErrInvalid)
	l := lockWith(t, b, "node")
	check.Is(t, l.Unlock(), locker.ErrNotHeld)
	locker.Must(l.Lock(nil))
	if lost, err := l.Lock(nil); lost != nil || err == nil {
		t.Error("a second Lock returned no error")
	}
	check.OK(t, l.Unlock())
	s.Empty()
}

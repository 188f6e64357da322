package locker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

func TestMain(m *testing.M) {
	// Printing by %p and by reflection reads time.Local without the Once that fills it in.
	_ = time.Local.String()
	goleak.VerifyTestMain(m)
}

// secret is the token of the locks in these tests.
const secret = "s3cr3t-t0ken-0123456789"

// fakeLease is a strategy's side of a hold: it records the operations, and answers by answer.
type fakeLease struct {
	answer func(ctx context.Context, op lease.Op) (lease.Result, error) // nil: success

	mu   sync.Mutex
	asks []lease.Op
}

func (l *fakeLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	l.mu.Lock()
	l.asks = append(l.asks, op)
	l.mu.Unlock()
	if l.answer != nil {
		return l.answer(ctx, op)
	}
	return lease.Result{Deadline: time.Now().Add(op.TTL)}, nil
}

func (l *fakeLease) Traits() lease.Traits {
	return lease.Traits{Source: locktrace.Source{Strategy: "test", Client: "none", Address: "nowhere:0"}}
}

// asked returns the operations so far.
func (l *fakeLease) asked() []lease.Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asks)
}

// refusing is a lease that answers every operation with err.
func refusing(err error) *fakeLease {
	return &fakeLease{answer: func(context.Context, lease.Op) (lease.Result, error) { return lease.Result{}, err }}
}

// silent is a lease that answers once free is closed.
func silent(free <-chan struct{}, result lease.Result, err error) *fakeLease {
	return &fakeLease{answer: func(context.Context, lease.Op) (lease.Result, error) {
		<-free
		return result, err
	}}
}

// hold makes a Lock on "a" for ttl; zero: for ever.
func hold(t *testing.T, l lease.Lease, ttl time.Duration) *locker.Lock {
	t.Helper()
	g := lease.HoldInfo{Name: "a", Token: secret, TTL: ttl}
	if ttl != 0 {
		g.Deadline = time.Now().Add(ttl)
	}
	return locker.NewLock(t.Context(), g, l)
}

// minute makes a Lock on "a" for a minute, under ctx.
func minute(ctx context.Context, l lease.Lease) *locker.Lock {
	return locker.NewLock(ctx, lease.HoldInfo{Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Minute)}, l)
}

// grants is a Locker that makes every Lock with l, for a minute.
func grants(l lease.Lease) locker.Locker {
	return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		return locker.NewLock(ctx, lease.HoldInfo{
			Name: req.Name, Owner: req.Owner, Mode: req.Mode, Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Minute),
		}, l), nil
	})
}

func wantNotError(t *testing.T, what string, err error, not ...error) {
	t.Helper()
	for _, n := range not {
		if errors.Is(err, n) {
			t.Errorf("%s: %v, want none that matches %q", what, err, n)
		}
	}
}

func wantOp(t *testing.T, err error, op string) {
	t.Helper()
	if oe, ok := errors.AsType[*locker.OpError](err); !ok || oe.Op != op {
		t.Errorf("error %v, want an OpError of %q", err, op)
	}
}

func wantInvalid(t *testing.T, what string, err error) {
	t.Helper()
	if ie, ok := errors.AsType[*locker.InvalidError](err); !ok || !errors.Is(err, locker.ErrInvalid) || ie.What == "" || ie.Allowed == "" {
		t.Errorf("%s: %v, want an InvalidError that says where and what is allowed", what, err)
	}
}

// transparent is a wrapper of a Lease with Unwrap; opaque has none.
type (
	transparent struct{ lease.Lease }
	opaque      struct{ lease.Lease }
)

func (t transparent) Unwrap() lease.Lease { return t.Lease }

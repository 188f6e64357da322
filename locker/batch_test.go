package locker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// member is a lease whose renewals travel together.
type member struct {
	batch any
	err   error
	sizes *[]int
	alone int
}

func (m *member) Do(_ context.Context, op lease.Op) (lease.Term, error) {
	m.alone++
	return lease.Term{Deadline: time.Now().Add(op.TTL)}, m.err
}

func (m *member) Batch() any { return m.batch }

func (m *member) RenewBatch(_ context.Context, renewals []lease.Renewal) {
	*m.sizes = append(*m.sizes, len(renewals))
	for i := range renewals {
		of, ok := renewals[i].Lease.(*member)
		if !ok {
			renewals[i].Err = errors.New("a wrapper")
			continue
		}
		renewals[i].Term.Deadline, renewals[i].Err = time.Now().Add(renewals[i].TTL), of.err
	}
}

// transparent is a wrapper that leaves renewals alone; opaque is one that may not.
type (
	transparent struct{ lease.Lease }
	opaque      struct{ lease.Lease }
)

func (t transparent) Unwrap() lease.Lease { return t.Lease }

func TestRenewBatch(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		down := errors.New("connection refused")
		var sizes []int
		var renewed atomic.Int32
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Renewed: func(context.Context, locktrace.RenewedInfo) { renewed.Add(1) }})
		lock := func(m *member, wrap func(lease.Lease) lease.Lease) *locker.Lock {
			m.sizes = &sizes
			l := locker.NewLock(ctx, lease.Grant{Name: "n", Token: "t", TTL: time.Hour, Deadline: time.Now().Add(time.Minute)}, m)
			if wrap != nil {
				l.Hold().Wrap(wrap)
			}
			return l
		}
		released := lock(&member{batch: 1}, nil)
		check.Must(t, released.Release(t.Context()))
		tests := []struct {
			what  string
			lock  *locker.Lock
			batch any
			err   error
			ends  bool
		}{
			{"first", lock(&member{batch: 1}, nil), 1, nil, false},
			{"wrapped", lock(&member{batch: 1}, func(l lease.Lease) lease.Lease { return transparent{transparent{l}} }), 1, nil, false},
			{"gone", lock(&member{batch: 1, err: locker.ErrNotHeld}, nil), 1, locker.ErrLost, true},
			{"down", lock(&member{batch: 1, err: down}, nil), 1, down, false},
			{"of another server", lock(&member{batch: 2}, nil), 2, nil, false},
			{"alone", lock(&member{}, nil), nil, nil, false},
			{"behind a wrapper", lock(&member{batch: 1}, func(l lease.Lease) lease.Lease { return opaque{l} }), nil, nil, false},
			{"released", released, 1, locker.ErrReleased, true},
			{"nil", nil, nil, locker.ErrNotHeld, true},
		}
		holds := make([]lease.Hold, len(tests))
		for i, tt := range tests {
			holds[i] = tt.lock.Hold()
			check.Equal(t, tt.what+": BatchOf", tt.lock.Hold().Batch(), tt.batch)
		}
		for i, err := range lease.RenewBatch(t.Context(), holds) {
			tt := tests[i]
			check.Error(t, tt.what, err, tt.err)
			var op *locker.OpError
			if err != nil && (!errors.As(err, &op) || op.Op != "renew") {
				t.Errorf("%s: %v is no OpError of a renewal", tt.what, err)
			}
			if ended := tt.lock.Err() != nil; ended != tt.ends {
				t.Errorf("%s: Err = %v afterwards", tt.what, tt.lock.Err())
			}
			if extended := time.Until(tt.lock.Deadline()) > 50*time.Minute; extended != (tt.err == nil) {
				t.Errorf("%s: Deadline = %v", tt.what, tt.lock.Deadline())
			}
		}
		if len(sizes) != 1 || sizes[0] != 4 {
			t.Errorf("batches of %v, want one of 4", sizes)
		}
		synctest.Wait()
		if n := int(renewed.Load()); n != len(tests)-1 {
			t.Errorf("Renewed was reported %d times", n)
		}
	})
}

package billing_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/recipes/billing"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a Store in memory. Each invoice takes a minute.
type store struct {
	orders, invoices []string
	fences           []int64
	before           func(order string)
}

func (s *store) Unbilled(context.Context, string) ([]string, error) { return s.orders, nil }

func (s *store) AddInvoice(ctx context.Context, _, order string, fence int64) error {
	if s.before != nil {
		s.before(order)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Minute):
	}
	s.invoices, s.fences = append(s.invoices, order), append(s.fences, fence)
	return nil
}

func TestBill(t *testing.T) {
	t.Parallel()
	type test struct {
		given    func(*lockertest.Locker) // before the call
		during   func(*lockertest.Locker) // while order 2 is billed
		invoices []string
		want     error // nil: none
		wantNot  error
		took     time.Duration
	}
	check.Each(t, map[string]test{
		"nobody else": {
			invoices: []string{"1", "2", "3"}, took: 3 * time.Minute,
		},
		"another is busy": {
			given: func(l *lockertest.Locker) { l.Hold(locker.Request{Name: "billing:c7", TTL: time.Hour}) },
			want:  billing.ErrBusy, took: 2 * time.Second,
		},
		"another is done soon": {
			given: func(l *lockertest.Locker) {
				other := l.Hold(locker.Request{Name: "billing:c7", TTL: time.Hour})
				time.AfterFunc(time.Second, func() { _ = other.Release(context.Background()) })
			},
			invoices: []string{"1", "2", "3"}, took: 3*time.Minute + time.Second,
		},
		"another customer": {
			given:    func(l *lockertest.Locker) { l.Hold(locker.Request{Name: "billing:c8"}) },
			invoices: []string{"1", "2", "3"}, took: 3 * time.Minute,
		},
		"an outage from the beginning": {
			given: func(l *lockertest.Locker) { l.SetOutage(lockertest.Silent) },
			want:  locker.ErrMaxWait, wantNot: billing.ErrBusy, took: 2 * time.Second,
		},
		"an outage that is shorter than the lease": {
			during: func(l *lockertest.Locker) {
				l.SetOutage(lockertest.Refused)
				time.AfterFunc(15*time.Second, func() { l.SetOutage(lockertest.NoOutage) })
			},
			invoices: []string{"1", "2", "3"}, took: 3 * time.Minute,
		},
		"an outage that is longer than the lease": {
			during: func(l *lockertest.Locker) {
				l.SetOutage(lockertest.Silent)
				time.AfterFunc(time.Minute, func() { l.SetOutage(lockertest.NoOutage) })
			},
			invoices: []string{"1"}, want: locker.ErrLost, wantNot: billing.ErrBusy,
		},
		"the lock is lost": {
			during:   func(l *lockertest.Locker) { l.Expire("billing:c7") },
			invoices: []string{"1"}, want: locker.ErrLost, wantNot: billing.ErrBusy, took: time.Minute,
		},
	}, func(t *testing.T, tt test) {
		synctest.Test(t, func(t *testing.T) { // a minute passes at once
			locks := lockertest.New()
			s := &store{orders: []string{"1", "2", "3"}}
			s.before = func(order string) {
				if order == "2" && tt.during != nil {
					tt.during(locks)
				}
			}
			if tt.given != nil {
				tt.given(locks)
			}
			begin := time.Now()
			err := billing.New(locker.Must(holdfast.Wrap(locks, holdfast.Config{})), s).Bill(t.Context(), "c7")
			if !errors.Is(err, tt.want) || tt.wantNot != nil && errors.Is(err, tt.wantNot) {
				t.Errorf("Bill returned %v, want %v", err, tt.want)
			}
			if took := time.Since(begin); tt.took != 0 && took != tt.took {
				t.Errorf("Bill took %v, want %v", took, tt.took)
			}
			check.EqualSlices(t, "invoices", s.invoices, tt.invoices)
			if slices.Contains(s.fences, 0) {
				t.Errorf("fencing tokens %v", s.fences)
			}
		})
	})
}

// TestLocksOfBill lists the library's lock requests: a change of its locks is a change of its
// interface.
func TestLocksOfBill(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		locks := lockertest.New()
		check.Must(t, billing.New(locks, &store{}).Bill(t.Context(), "c7"))
		calls := locks.Calls()
		want := locker.Request{Name: "billing:c7", MaxWait: 2 * time.Second, Fenced: true}
		if len(calls) != 2 || calls[0].Request != want || calls[1].Op != "release" {
			t.Errorf("calls %v, want an acquire of %+v and its release", calls, want)
		}
	})
}

package locker_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// A renewal that no Trace reports costs as little as one without a Trace.
func TestRenewalWithoutRenewed(t *testing.T) { //nolint:paralleltest // it counts allocations
	renew := func(trace *locktrace.Trace) float64 {
		lock := locker.NewLock(locktrace.With(context.Background(), trace), lease.HoldInfo{Name: "a", Token: secret}, &fakeLease{})
		return testing.AllocsPerRun(100, func() { check.OK(t, lock.Renew(context.Background(), 0)) })
	}
	traced := renew(&locktrace.Trace{Lost: func(context.Context, locktrace.LostInfo) {}})
	check.Equal(t, "allocations", traced, renew(&locktrace.Trace{}))
}

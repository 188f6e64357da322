package metrics_test

import (
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/metrics"
)

// Each end of a hold is counted.
func TestHolds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		use  func(t *testing.T, server *lockertest.Locker, lock *locker.Lock)
		want []string
	}{
		{
			name: "held", use: func(*testing.T, *lockertest.Locker, *locker.Lock) { elapse(time.Second) },
			want: []string{"held 1 lock.mode=exclusive"},
		},
		{
			name: "renewed and released", use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				elapse(time.Second)
				server.FailRenew(io.EOF)
				_, _, _ = lock.Renew(t.Context(), 0), lock.Renew(t.Context(), 0), lock.Renew(t.Context(), 0)
				_, _ = lock.Release(t.Context()), lock.Release(t.Context())
			},
			want: []string{
				"held 0 lock.mode=exclusive", "hold.duration 1 of 1 lock.mode=exclusive outcome=released",
				"renewal.failures 1 lock.mode=exclusive",
				"renewals 1 error.type=eof lock.mode=exclusive outcome=error", "renewals 2 lock.mode=exclusive outcome=renewed",
			},
		},
		{
			name: "a renewal that the release overtook", use: func(t *testing.T, _ *lockertest.Locker, lock *locker.Lock) {
				_ = lock.Release(t.Context())
				check.Is(t, lock.Renew(t.Context(), 0), locker.ErrReleased)
			},
			want: []string{"held 0 lock.mode=exclusive", "hold.duration 1 of 0 lock.mode=exclusive outcome=released"},
		},
		{
			name: "never released", use: func(*testing.T, *lockertest.Locker, *locker.Lock) { elapse(time.Minute) },
			want: []string{
				"held 0 lock.mode=exclusive", "hold.duration 1 of 30 error.type=lost lock.mode=exclusive outcome=lost", "losses 1 lock.mode=exclusive",
			},
		},
		{
			name: "found gone by a renewal, then released", use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				server.FailRenew(locker.ErrNotHeld)
				_ = lock.Renew(t.Context(), 0)
				_ = lock.Release(t.Context())
			},
			want: []string{
				"held 0 lock.mode=exclusive", "hold.duration 1 of 0 error.type=lost lock.mode=exclusive outcome=lost", "losses 1 lock.mode=exclusive",
				"renewal.failures 1 lock.mode=exclusive", "renewals 1 error.type=lost lock.mode=exclusive outcome=lost",
			},
		},
		{
			name: "release that failed", use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				server.FailRelease(&driver.ServerError{Text: "NOPERM x"})
				_ = lock.Release(t.Context())
			},
			want: []string{"held 0 lock.mode=exclusive", "hold.duration 1 of 0 error.type=NOPERM lock.mode=exclusive outcome=error"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *lockertest.Locker, m *measured) {
				lock := locker.Must(m.middleware(t, metrics.Config{})(server).Acquire(t.Context(), locker.Request{Name: "job"}))
				tt.use(t, server, lock)
				synctest.Wait()
				runtime.KeepAlive(lock) // a Lock collected before is reported as forgotten
				got := slices.DeleteFunc(m.lines(t), func(line string) bool {
					return strings.HasPrefix(line, "acquisitions 1 ") || strings.HasPrefix(line, "wait.duration 1 ")
				})
				want := slices.Clone(tt.want)
				for _, name := range []string{"losses", "renewal.failures"} { // at zero, so the first is an increase
					if !slices.ContainsFunc(want, func(line string) bool { return strings.HasPrefix(line, name+" ") }) {
						want = append(want, name+" 0 lock.mode=exclusive")
					}
				}
				slices.Sort(want)
				equal(t, "measurements", got, want)
			})
		})
	}
}

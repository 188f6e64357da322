package metrics_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/metrics"
)

// Hand-overs are counted apart.
func TestHandOver(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker, m *measured) {
		l := locker.Must(handover.New(handover.Config{Tenure: time.Minute}))(server)
		held := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job"}))
		done := make(chan struct{})
		go func() {
			defer close(done)
			cycle(t, locker.Chain(l, m.middleware(t, metrics.Config{})), locker.Request{Name: "job"})
		}()
		synctest.Wait()
		elapse(time.Second)
		check.OK(t, held.Release(t.Context()))
		<-done
		got := m.lines(t)[:1]
		equal(t, "acquisitions", got, []string{"acquisitions 1 contended=true handed_over=true lock.mode=exclusive outcome=acquired"})
	})
}

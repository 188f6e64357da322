package rueidis_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
)

// While Close waits, a caller that leaves fails no other command of its flight.
func TestLeavingDuringClose(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		drv := dial(t, single(m.Net.Dial, p.Addr()))
		answered(t, drv, 100)
		p.Latency(time.Second)
		drv.Background(func(context.Context) { <-time.After(2500 * time.Millisecond) })
		var wg sync.WaitGroup
		for i := range 20 {
			d := 10 * time.Second
			if i%2 == 0 {
				d = 500 * time.Millisecond
			}
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				if _, err := drv.SetNX(ctx, "k", "v", time.Minute); d > time.Second && err != nil {
					t.Errorf("a caller that waits: %v", err)
				}
			})
		}
		<-time.After(100 * time.Millisecond)
		check.OK(t, drv.Close())
		wg.Wait()
	})
}

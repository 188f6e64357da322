package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A leader that is cut off for longer than its lease stops in time, another one leads, and once the
// outage is over the first one is a Candidate again.
func TestOutageLongerThanTheLease(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Options{})
	for _, client := range clients.All {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			const ttl = time.Second
			proxy := faultproxy.Start(t, srv.Addr())
			open := func(drv driver.Driver) locker.Locker {
				return wrap(locker.Must(single.New(drv, single.Config{})))
			}
			stopped := make(chan struct{}, 100) // a term of a has ended
			a := run(t, open(client.Open(t, proxy.Addr())), leader.Config{Name: t.Name(), TTL: ttl, Lead: func(ctx context.Context, _ int64) error {
				<-ctx.Done()
				stopped <- struct{}{}
				return ctx.Err()
			}})
			term := a.leads()
			b := run(t, open(client.Open(t, srv.Addr())), leader.Config{Name: t.Name(), TTL: 30 * time.Second})
			proxy.Freeze()
			next := b.leads() // not before the lease of a has ended at the server
			a.isLeader(0)
			select {
			case <-stopped:
			case <-time.After(patience):
				t.Fatal("Lead's ctx does not end")
			}
			if next <= term {
				t.Errorf("term %d after %d", next, term)
			}
			proxy.Thaw()
			b.stop()
			match(t, b.result())
			for last := term; last <= next; { // a busy machine may have lost leases before the outage
				last = a.leads()
			}
			a.stop()
			if err := a.result(); err != nil {
				t.Logf("it stopped with %v", err)
			}
		})
	}
}

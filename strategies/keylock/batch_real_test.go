package keylock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// scripts returns how many scripts the servers have run.
func scripts(t *testing.T, servers []*redistest.Server) (sum int) {
	t.Helper()
	for _, server := range servers {
		info := fmt.Sprint(server.MustCommand(t, "INFO", "commandstats"))
		for line := range strings.Lines(info) {
			var n int
			if _, err := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,", &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// An acquire of several names is one command at a single server, for any names, and in a cluster
// for names with a common hash tag.
func TestBatchAtRealServers(t *testing.T) {
	t.Parallel()
	server, cluster := redistest.Start(t, redistest.Options{}), redistest.StartCluster(t, 3, redistest.Options{})
	for _, tt := range []struct {
		kind    string
		target  drivertest.Target
		servers []*redistest.Server
		format  string
		scripts int // per call; 0: one SET for each name
	}{
		{"single", drivertest.Target{Kind: drivertest.Single, Addrs: []string{server.Addr()}}, []*redistest.Server{server}, "%s-%d", 1},
		{"cluster, one slot", drivertest.Target{Kind: drivertest.Cluster, Addrs: cluster.Addrs()}, cluster.Nodes(), "{%s}-%d", 1},
		{"cluster", drivertest.Target{Kind: drivertest.Cluster, Addrs: cluster.Addrs()}, cluster.Nodes(), "%s-%d", 0},
	} {
		for _, client := range clients.All { // one by one, to count commands
			drv := locker.Must(client.Dial(t, tt.target))
			t.Cleanup(func() { _ = drv.Close() })
			l := locker.Must(single.New(drv, single.Config{}))
			const n = 8
			var reqs []locker.Request
			for i := range n {
				reqs = append(reqs, locker.Request{Name: fmt.Sprintf(tt.format, client.Name, i), TTL: time.Minute, NoWait: true})
			}
			warm, err := locker.AcquireAll(t.Context(), l, reqs)
			wantNone(t, err)
			wantNone(t, warm.Release(t.Context()))
			before := scripts(t, tt.servers)
			locks, err := locker.AcquireAll(t.Context(), l, reqs)
			wantNone(t, err)
			if got := scripts(t, tt.servers) - before; got != tt.scripts {
				t.Errorf("%s, %s: %d scripts, want %d", client.Name, tt.kind, got, tt.scripts)
			}
			_, err = locker.AcquireAll(t.Context(), l, reqs[2:])
			wantIs(t, err, locker.ErrNotAcquired)
			wantFailed(t, err, reqs[2].Name)
			for _, lock := range locks.All() {
				wantNone(t, lock.Renew(t.Context(), 0))
			}
			wantNone(t, locks.All()[n-1].Release(t.Context()))
			at := server
			if tt.target.Kind == drivertest.Cluster {
				at = cluster.NodeForKey(reqs[n-1].Name)
			}
			at.MustCommand(t, "RPUSH", reqs[n-1].Name, "an item")
			wantNone(t, locks.Release(t.Context()))
			_, err = locker.AcquireAll(t.Context(), l, reqs)
			wantFailed(t, err, reqs[n-1].Name)
			if driver.CodeOf(err) != "WRONGTYPE" {
				t.Errorf("%s, %s: %v, want WRONGTYPE", client.Name, tt.kind, err)
			}
			for _, req := range reqs[:n-1] {
				if state, err := locker.Inspect(t.Context(), l, req.Name); err != nil || state.Held {
					t.Errorf("%s, %s: %q is held: %+v, %v", client.Name, tt.kind, req.Name, state, err)
				}
			}
			at.MustCommand(t, "DEL", reqs[n-1].Name)
		}
	}
}

package keylock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// TestFailoverKeepsWhatIsAcknowledged kills a master right after a grant and makes its replica the next
// master, which is behind by all since the acquire was sent. A grant without MinReplicas is lost. With it
// the grant waits for the replica, and the lock is there.
func TestFailoverKeepsWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	for _, c := range clients.All {
		for replicas, want := range []int64{0, 1} {
			t.Run(fmt.Sprintf("%s, MinReplicas %d", c.Name, replicas), func(t *testing.T) {
				t.Parallel()
				master := redistest.Start(t, redistest.Options{})
				link := redistest.StartRelay(t, master.Addr())
				replica := redistest.StartReplica(t, master, link.Addr())
				l := locker.Must(single.New(c.Open(t, master.Addr()), single.Config{
					MinReplicas: replicas, AttemptTimeout: time.Minute, ReplicaTimeout: 30 * time.Second,
				}))
				link.Hold()
				granted := make(chan error, 1)
				go func() {
					_, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Hour})
					granted <- err
				}()
				if replicas > 0 {
					check.Eventually(t, "the grant waits for the replica", func() bool {
						stats, _ := master.MustCommand(t, "INFO", "clients").(string)
						return strings.Contains(stats, "blocked_clients:1")
					})
					link.Pass()
				}
				wantNone(t, <-granted)
				wantNone(t, master.Kill())
				replica.MustCommand(t, "REPLICAOF", "NO", "ONE")
				check.Equal(t, "locks behind the failover", replica.MustCommand(t, "EXISTS", name), any(want))
			})
		}
	}
}

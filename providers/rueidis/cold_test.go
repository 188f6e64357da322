package rueidis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// In a cluster, many answers about one lock prove nothing of the connection of another lock's slot:
// a call that finds somebody else dialing that one returns soon after its ctx ends all the same.
func TestColdConnectionOfACluster(t *testing.T) {
	proxies, c := proxiedCluster(t)
	for i := range 6 {
		drv := dial(t, redis.ClientOption{InitAddress: c.Addrs()[:1], ConnWriteTimeout: forever})
		for range 100 {
			if _, err := drv.SetNX(t.Context(), "hot", "v", time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range proxies {
			p.Freeze()
		}
		key := fmt.Sprint("other", i)
		long, short := driver.Bound(context.Background(), patience), driver.Bound(context.Background(), soon)
		dialing, waiting := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := drv.SetNX(long, key, "v", time.Minute)
			dialing <- err
		}()
		<-time.After(20 * time.Millisecond) // it dials by now; if it does not yet, the other does: then nothing is shown
		go func() {
			_, err := drv.SetNX(short, key, "v", time.Minute)
			waiting <- err
		}()
		select {
		case err := <-waiting:
			if err == nil {
				t.Errorf("%s: an answer from a frozen server", key)
			}
		case <-time.After(patience / 5):
			t.Errorf("%s: not back %v after a ctx of %v", key, patience/5, soon)
			waiting = nil
		}
		for _, p := range proxies {
			p.Thaw()
		}
		<-dialing
		short.Stop()
		long.Stop()
	}
}

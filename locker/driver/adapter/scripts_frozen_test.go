//nolint:forbidigo // fake time
package adapter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// Calls to other nodes of a cluster do not wait for a first caller whose node is frozen.
func TestFirstCallerAtAFrozenNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c adapter.ScriptCache
		s := driver.NewScript("return 1")
		call := func(frozen bool, d time.Duration) error {
			ctx := driver.Bound(context.Background(), d)
			defer ctx.Stop()
			_, err := c.Eval(ctx, s, func(string, string) (driver.Reply, error) {
				if frozen {
					<-ctx.Done()
					return driver.Reply{}, ctx.Err()
				}
				return driver.NewReply(1)
			})
			return err
		}
		for range 3 {
			go call(true, 3*time.Second)
		}
		synctest.Wait()
		for i, most := range []time.Duration{200 * time.Millisecond, 0, 0} { // the first one finds out
			began := time.Now()
			if err := call(false, 500*time.Millisecond); err != nil || time.Since(began) > most {
				t.Errorf("call %d at a node that answers took %v: %v", i, time.Since(began), err)
			}
		}
		time.Sleep(10 * time.Second)
	})
}

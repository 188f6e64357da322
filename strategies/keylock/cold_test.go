package keylock_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// TestColdScripts checks that few of many concurrent calls find that the server does not know their
// script.
func TestColdScripts(t *testing.T) {
	t.Parallel()
	const callers, most = 300, 5
	s := driver.NewScript("return 1")
	for _, c := range clients.All {
		for _, acked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, acked %v", c.Name, acked), func(t *testing.T) {
				t.Parallel()
				clients.Bubble(t, func(t *testing.T) {
					server := memredis.Start(t, memnet.New())
					drv := c.OpenOn(t, server.Net, server.Addr())
					var wg sync.WaitGroup
					for i := range callers {
						wg.Go(func() {
							if keys := []string{strconv.Itoa(i)}; acked { // miniredis does not know WAIT
								_, _, _ = drv.EvalAcked(t.Context(), s, keys, nil, 0, time.Millisecond)
							} else {
								_, _ = drv.Eval(t.Context(), s, keys, nil)
							}
						})
					}
					wg.Wait()
					events := strings.Join(server.Events(100*callers), "\n")
					check.Within(t, "calls that got NOSCRIPT", strings.Count(events, "NOSCRIPT"), 1, most)
				})
			})
		}
	}
}

package keylock_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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
	key := func(i int) []string { return []string{strconv.Itoa(i)} }
	for name, call := range map[string]func(ctx context.Context, drv driver.Driver, i int) error{
		"Eval": func(ctx context.Context, drv driver.Driver, i int) error {
			_, err := drv.Eval(ctx, s, key(i), nil)
			return err
		},
		"EvalAcked": func(ctx context.Context, drv driver.Driver, i int) error {
			a := drv.(driver.Acknowledger)
			_, _, err := a.EvalAcked(ctx, s, key(i), nil, 0, time.Millisecond)
			return err
		},
	} {
		for _, c := range clients.All {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				clients.Bubble(t, func(t *testing.T) {
					server := memredis.Start(t, memnet.New())
					drv := c.OpenOn(t, server.Net, server.Addr())
					var wg sync.WaitGroup
					for i := range callers {
						wg.Go(func() { _ = call(t.Context(), drv, i) }) // miniredis does not know WAIT
					}
					wg.Wait()
					events := strings.Join(server.Events(100*callers), "\n")
					if n := strings.Count(events, "NOSCRIPT"); n == 0 || n > most {
						t.Errorf("%d of %d calls got NOSCRIPT", n, callers)
					}
				})
			})
		}
	}
}

package keylock_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// TestColdScripts checks that few of many concurrent calls find that the server does not know their
// script.
func TestColdScripts(t *testing.T) {
	t.Parallel()
	const callers, most, rounds = 300, 5, 5
	s := driver.NewScript("return 1")
	key := func(i int) []string { return []string{strconv.Itoa(i)} }
	server := redistest.Start(t, redistest.Options{})
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
			refused := callers
			for round := 0; refused > most && round < rounds; round++ { // a busy machine may be too slow in one
				drv := c.Open(t, server.Addr())
				server.MustCommand(t, "SCRIPT", "FLUSH")
				server.MustCommand(t, "CONFIG", "RESETSTAT")
				var wg sync.WaitGroup
				for i := range callers {
					wg.Go(func() {
						if err := call(t.Context(), drv, i); err != nil {
							t.Errorf("%s: %s: %v", c.Name, name, err)
						}
					})
				}
				wg.Wait()
				refused = refusals(t, server)
			}
			if refused > most {
				t.Errorf("%s: %s: %d of %d calls got NOSCRIPT", c.Name, name, refused, callers)
			}
		}
	}
}

// refusals returns how often the server answered NOSCRIPT.
func refusals(t *testing.T, server *redistest.Server) int {
	t.Helper()
	info, _ := server.MustCommand(t, "INFO", "errorstats").(string)
	_, count, found := strings.Cut(info, "errorstat_NOSCRIPT:count=")
	if !found {
		return 0
	}
	count, _, _ = strings.Cut(count, "\r")
	n, err := strconv.Atoi(count)
	wantNone(t, err)
	return n
}

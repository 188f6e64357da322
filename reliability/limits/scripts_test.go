package limits

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Of many who call a script that the server does not know, one sends the source: a cold start costs
// a handful of refusals, not one or two for each caller.
func TestColdStart(t *testing.T) { //nolint:paralleltest // see each
	effort.NeedFull(t)
	each(t, func(t *testing.T, server *redistest.Server, open func() driver.Driver) {
		const callers, most = 1000, 4
		l := locker.Must(single.New(open(), single.Config{}))
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				lock, err := l.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("cold", i), Fenced: true})
				if err != nil {
					t.Errorf("Acquire: %v", err)
					return
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("Release: %v", err)
				}
			})
		}
		wg.Wait()
		if n := refusedScripts(t, server); n > most {
			t.Errorf("%d NOSCRIPTs for %d callers of two scripts, want %d at most", n, callers, most)
		}
	})
}

// refusedScripts is how often the server did not know a script.
func refusedScripts(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	text, _ := server.MustCommand(t, "INFO", "errorstats").(string)
	for line := range strings.Lines(text) {
		_, _ = fmt.Sscanf(line, "errorstat_NOSCRIPT:count=%d", &n)
	}
	return n
}

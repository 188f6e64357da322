package redigo_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
)

// A server stops reading while nobody reads its replies: no buffer of a pipe hides a deadlock.
func TestReadsWhileItWrites(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		drv, closeClient, err := clients.All[2].InMemory(clients.NewMemory(t).Dial)
		check.Must(t, err)
		t.Cleanup(func() { check.Must(t, drv.Close()); check.Must(t, closeClient()) })
		ctx := bound(t, t.Context(), patience)
		var wg sync.WaitGroup
		for i := range 200 { // they travel together
			wg.Go(func() {
				r, err := drv.Eval(ctx, incr, []string{fmt.Sprint("k", i)}, []string{strings.Repeat("x", 500)})
				wantInt(t, r, err, 1)
			})
		}
		wg.Wait()
	})
}

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
)

// Each renewal writes, even one for less than the rest of the lease: else a WAIT behind it proves
// nothing. A WAIT would write itself, so this test has none, nor a fence counter.
func TestEachRenewalWrites(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.Options{Args: []string{"--repl-ping-replica-period", "3600"}})
	redistest.StartReplica(t, master, master.Addr())
	drv := clients.All[0].Open(t, master.Addr())
	offset := func() (n int64) { // bytes written by the master so far
		info, _ := master.MustCommand(t, "INFO", "replication").(string)
		_, after, _ := strings.Cut(info, "master_repl_offset:")
		check.Must(t, check.ErrOf(fmt.Sscan(after, &n)))
		return n
	}
	for _, s := range strategies {
		lock, err := locker.Must(s.new(drv, settings{attempt: time.Minute})).Acquire(t.Context(), locker.Request{Name: s.name, TTL: time.Minute})
		wantNone(t, err)
		before := offset()
		wantNone(t, lock.Renew(t.Context(), 3*time.Millisecond))
		if offset() == before {
			t.Errorf("%s: a renewal wrote nothing", s.name)
		}
		wantNone(t, lock.Release(t.Context()))
	}
}

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
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// Among thousands of expired holds and hundreds of live ones a cycle never reads all holds, and
// others are refused until the last live hold is released. The server counts the commands.
func TestManyHoldsOnARealServer(t *testing.T) {
	t.Parallel()
	const cycles, live = 20, 200
	server := redistest.Start(t, redistest.Options{})
	drv := clients.All[0].Open(t, server.Addr())
	for _, s := range []struct {
		l       locker.Locker
		mode    locker.Mode
		expired string
	}{
		{locker.Must(reentrant.New(drv, reentrant.Config{AttemptTimeout: time.Minute})), locker.Exclusive, "1"},
		{locker.Must(rwhash.New(drv, rwhash.Config{AttemptTimeout: time.Minute})), locker.Shared, "1 0 0:"},
	} {
		mine := locker.Request{Name: "job-" + s.mode.String(), Owner: "me", Mode: s.mode, TTL: 2 * time.Hour}
		locks := []*locker.Lock{locker.Must(s.l.Acquire(t.Context(), mine))}
		mine.TTL = 3 * time.Hour
		for _, n := range []int{100, 50_000} {
			server.MustCommand(t, "EVAL", `for i = 1, tonumber(ARGV[1]) do
				redis.call('HSET', KEYS[1], string.format('%022d', i), ARGV[2]) end`, 1, mine.Name, n, s.expired)
			wantNone(t, locker.Must(s.l.Acquire(t.Context(), mine)).Release(t.Context()))
		}
		server.MustCommand(t, "CONFIG", "RESETSTAT")
		for range cycles {
			wantNone(t, locker.Must(s.l.Acquire(t.Context(), mine)).Release(t.Context()))
		}
		if info := fmt.Sprint(server.MustCommand(t, "INFO", "commandstats")); strings.Contains(info, "cmdstat_hgetall") {
			t.Errorf("%v: a cycle reads all holds:\n%s", s.mode, info)
		}
		for range live {
			locks = append(locks, locker.Must(s.l.Acquire(t.Context(), mine)))
		}
		for i := range locks {
			if i%100 == 0 {
				_, err := s.l.Acquire(t.Context(), locker.Request{Name: mine.Name, NoWait: true})
				wantIs(t, err, locker.ErrNotAcquired)
			}
			wantNone(t, locks[len(locks)-1-i].Release(t.Context()))
		}
		check.Equal(t, "keys that are left", server.MustCommand(t, "EXISTS", mine.Name), any(int64(0)))
	}
}

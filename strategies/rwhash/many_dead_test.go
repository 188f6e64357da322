package rwhash_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// A cycle reads a bounded number of expired holds, however many there are. The server counts how
// often a script read one.
func TestCyclesBesideManyDeadReaders(t *testing.T) {
	t.Parallel()
	const dead, cycles = 50_000, 100
	server := redistest.Start(t, redistest.Options{})
	l := locker.Must(rwhash.New(clients.All[0].Open(t, server.Addr()), rwhash.Config{AttemptTimeout: time.Minute}))
	stays, err := l.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared, TTL: 2 * time.Hour})
	match(t, err)
	cycle := func(key string) {
		lock, err := l.Acquire(t.Context(), locker.Request{Name: key, Mode: locker.Shared, TTL: 3 * time.Hour})
		match(t, err)
		match(t, lock.Release(t.Context()))
	}
	for _, n := range []int{100, dead} {
		server.MustCommand(t, "EVAL", `for i = 1, tonumber(ARGV[1]) do redis.call('HSET', KEYS[1], string.format('%022d', i), '1 0 0:') end`, 1, name, n)
		cycle(name)
	}
	var took [2]float64
	for i, key := range []string{"beside none", name} {
		server.MustCommand(t, "CONFIG", "RESETSTAT")
		for range cycles {
			cycle(key)
		}
		info := fmt.Sprint(server.MustCommand(t, "INFO", "commandstats"))
		if n := stat(t, info, `cmdstat_hgetall:calls=(\d+)`); n > 0 {
			t.Errorf("%s: of %d cycles %v looked at all holds, want none", key, cycles, n)
		}
		took[i] = stat(t, info, `cmdstat_evalsha:calls=\d+,usec=(\d+)`) / cycles
	}
	t.Logf("a cycle takes the server %.0f µs beside none, %.0f µs beside %d", took[0], took[1], dead)
	match(t, stays.Renew(t.Context(), 0))
	_, err = l.Acquire(t.Context(), locker.Request{Name: name, NoWait: true})
	match(t, err, locker.ErrNotAcquired)
	match(t, stays.Release(t.Context()))
	lock, err := l.Acquire(t.Context(), locker.Request{Name: name, NoWait: true})
	match(t, err)
	match(t, lock.Release(t.Context()))
}

func stat(t *testing.T, info, pattern string) float64 {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(info)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseFloat(found[1], 64)
	match(t, err)
	return n
}

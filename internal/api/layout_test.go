package api_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Each strategy stores and publishes exactly the contents of layout.txt: processes with other
// versions read it. docs/versions.md lists the permitted changes.
func TestLayout(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, s := range []struct {
		name string
		mode locker.Mode
		open func(driver.Driver) (locker.Locker, error)
	}{
		{"single", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) { return single.New(d, single.Config{}) }},
		{"reentrant", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) { return reentrant.New(d, reentrant.Config{}) }},
		{"rwhash", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) { return rwhash.New(d, rwhash.Config{}) }},
		{"rwhash", locker.Shared, func(d driver.Driver) (locker.Locker, error) { return rwhash.New(d, rwhash.Config{}) }},
		{"semaphore", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) {
			return semaphore.New(d, semaphore.Config{Permits: 1})
		}},
		{"redisson", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) { return redisson.New(d, redisson.Config{}) }},
	} {
		lines = append(lines, layout(t, s.name+", "+s.mode.String(), s.mode, s.open)...)
	}
	got := strings.Join(lines, "\n") + "\n"
	const file = "layout.txt"
	if *update {
		check.Must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	check.Must(t, err)
	if got != string(want) {
		t.Errorf("what is at the server is no longer what %s has:\n%s\nProcesses with an earlier version must understand it; "+
			"see docs/versions.md. If that is intended: go test ./internal/api -update", file, got)
	}
}

// layout returns the server's content while a lock of that mode is held and another process waits
// for it, the message of the release, and the rest after the release of a lock with MinHold.
func layout(t *testing.T, title string, mode locker.Mode, open func(driver.Driver) (locker.Locker, error)) (lines []string) {
	t.Helper()
	server := miniredis.RunT(t)
	l := locker.Must(open(clients.All[0].Open(t, server.Addr())))
	listener := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer listener.Close()
	messages := listener.PSubscribe(t.Context(), "*")
	defer messages.Close()
	check.Must(t, check.ErrOf(messages.Receive(t.Context())))

	acquire := func(req locker.Request) *locker.Lock {
		lock, err := l.Acquire(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		return lock
	}
	held := acquire(locker.Request{Name: "lock", Mode: mode, Owner: "an owner", Note: "a note", TTL: time.Hour, Fenced: true})
	wait := lease.WithWaiting(t.Context(), lease.Waiting{ID: lease.NewToken(), Since: time.Now(), Subscribed: true})
	_, err := l.Acquire(wait, locker.Request{Name: "lock", Owner: "b", Note: "waits", TTL: time.Hour})
	check.Error(t, title+": the second acquire", err, locker.ErrNotAcquired)
	lines = append(lines, "# "+title+": held, and another waits")
	lines = append(lines, stored(t, server)...)
	check.Must(t, held.Release(context.Background()))
	message, err := messages.ReceiveMessage(t.Context())
	check.Must(t, err)
	handle, _, _ := strings.Cut(held.Handle().Encode(), ".")
	lines = append(lines, "publish "+normal(message.Channel), "handle "+handle+".", "")

	server.FlushAll()
	kept := acquire(locker.Request{Name: "lock", Mode: mode, Note: "a note", TTL: time.Hour, MinHold: time.Hour})
	check.Must(t, kept.Release(context.Background()))
	lines = append(lines, "# "+title+": released before MinHold has passed")
	return append(append(lines, stored(t, server)...), "")
}

func stored(t *testing.T, server *miniredis.Miniredis) (lines []string) {
	t.Helper()
	for _, key := range server.Keys() {
		if !strings.HasPrefix(key, "redisson_lock_token:") { // it has none, by Redisson's protocol
			check.AtLeast(t, "TTL of "+key, server.TTL(key), 1)
		}
		var of []string
		switch kind := server.Type(key); kind {
		case "string":
			of = append(of, fmt.Sprintf("string %s = %s", key, normal(locker.Must(server.Get(key)))))
		case "hash":
			for _, f := range locker.Must(server.HKeys(key)) {
				of = append(of, fmt.Sprintf("hash %s: %s = %s", key, normal(f), normal(server.HGet(key, f))))
			}
		case "zset":
			for member, score := range locker.Must(server.SortedSet(key)) {
				of = append(of, fmt.Sprintf("sorted set %s: %s = %s", key, normal(member), normal(fmt.Sprintf("%.0f", score))))
			}
		default:
			t.Errorf("%s is a %s", key, kind)
		}
		slices.Sort(of)
		lines = append(lines, of...)
	}
	return lines
}

var (
	tokens = regexp.MustCompile(`redisson_\w+|[\w-]{21,22}`) // the first is a name
	times  = regexp.MustCompile(`\d{13,16}`)
)

// normal puts TOKEN and TIME for the values of one run.
func normal(s string) string {
	s = tokens.ReplaceAllStringFunc(s, func(found string) string {
		if strings.HasPrefix(found, "redisson_") {
			return found
		}
		return "TOKEN"
	})
	return times.ReplaceAllString(s, "TIME")
}

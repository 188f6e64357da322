package api_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// What each strategy stores and publishes is what layout.txt has: processes with other versions
// read it. docs/versions.md says when it may change.
func TestLayout(t *testing.T) {
	t.Parallel()
	strategies := []struct {
		name  string
		open  func(driver.Driver) (locker.Locker, error)
		modes []locker.Mode
	}{
		{"single", func(d driver.Driver) (locker.Locker, error) { return single.New(d, single.Config{}) },
			[]locker.Mode{locker.Exclusive}},
		{"reentrant", func(d driver.Driver) (locker.Locker, error) { return reentrant.New(d, reentrant.Config{}) },
			[]locker.Mode{locker.Exclusive}},
		{"rwhash", func(d driver.Driver) (locker.Locker, error) { return rwhash.New(d, rwhash.Config{}) },
			[]locker.Mode{locker.Exclusive, locker.Shared}},
		{"semaphore", func(d driver.Driver) (locker.Locker, error) {
			return semaphore.New(d, semaphore.Config{Permits: 1})
		}, []locker.Mode{locker.Exclusive}},
	}
	var lines []string
	for _, s := range strategies {
		for _, mode := range s.modes {
			lines = append(lines, layout(t, s.name+", "+mode.String(), mode, s.open)...)
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	const file = "layout.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("what is at the server is no longer what %s has:\n%s\nProcesses with an earlier version must understand it; "+
			"see docs/versions.md. If that is intended: go test ./internal/api -update", file, got)
	}
}

// layout returns what is at the server while a lock of that mode is held and another process waits
// for it, what the release publishes, and what is left after the release of a lock with MinHold.
func layout(t *testing.T, title string, mode locker.Mode, open func(driver.Driver) (locker.Locker, error)) (lines []string) {
	t.Helper()
	server := miniredis.RunT(t)
	l := locker.Must(open(clients.All[0].Open(t, server.Addr())))
	listener := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer listener.Close()
	messages := listener.PSubscribe(t.Context(), "*")
	defer messages.Close()
	if _, err := messages.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}

	acquire := func(req locker.Request) *locker.Lock {
		lock, err := l.Acquire(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		return lock
	}
	held := acquire(locker.Request{Name: "lock", Mode: mode, Owner: "an owner", Note: "a note", TTL: time.Hour, Fenced: true})
	wait := lease.WithWaiting(t.Context(), lease.Waiting{ID: lease.NewToken(), Since: time.Now(), Subscribed: true})
	if _, err := l.Acquire(wait, locker.Request{Name: "lock", Owner: "b", Note: "waits", TTL: time.Hour}); !errors.Is(err, locker.ErrNotAcquired) {
		t.Fatalf("%s: the second acquire: %v", title, err)
	}
	lines = append(lines, "# "+title+": held, and another waits")
	lines = append(lines, stored(t, server)...)
	if err := held.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	message, err := messages.ReceiveMessage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	handle, _, _ := strings.Cut(held.Handle().Encode(), ".")
	lines = append(lines, "publish "+normal(message.Channel), "handle "+handle+".", "")

	server.FlushAll()
	kept := acquire(locker.Request{Name: "lock", Mode: mode, Note: "a note", TTL: time.Hour, MinHold: time.Hour})
	if err := kept.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	lines = append(lines, "# "+title+": released before MinHold has passed")
	return append(append(lines, stored(t, server)...), "")
}

// stored returns what the server has.
func stored(t *testing.T, server *miniredis.Miniredis) (lines []string) {
	t.Helper()
	for _, key := range server.Keys() {
		if server.TTL(key) <= 0 {
			t.Errorf("%s does not expire", key)
		}
		switch kind := server.Type(key); kind {
		case "string":
			value, err := server.Get(key)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("string %s = %s", key, normal(value)))
		case "hash":
			fields, err := server.HKeys(key)
			if err != nil {
				t.Fatal(err)
			}
			var of []string
			for _, f := range fields {
				of = append(of, fmt.Sprintf("hash %s: %s = %s", key, normal(f), normal(server.HGet(key, f))))
			}
			slices.Sort(of)
			lines = append(lines, of...)
		case "zset":
			members, err := server.SortedSet(key)
			if err != nil {
				t.Fatal(err)
			}
			var of []string
			for member, score := range members {
				of = append(of, fmt.Sprintf("sorted set %s: %s = %s", key, normal(member), normal(fmt.Sprintf("%.0f", score))))
			}
			slices.Sort(of)
			lines = append(lines, of...)
		default:
			t.Errorf("%s is a %s", key, kind)
		}
	}
	return lines
}

var (
	tokens = regexp.MustCompile(`[\w-]{21,22}`)
	times  = regexp.MustCompile(`\d{13,16}`)
)

// normal puts TOKEN and TIME for what differs each time.
func normal(s string) string {
	return times.ReplaceAllString(tokens.ReplaceAllString(s, "TOKEN"), "TIME")
}

//go:build unix

package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A holder learns of a release --force long before its next renewal, also in a quorum. Without
// permission to subscribe it runs as well.
func TestReleaseTellsHolder(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	s.MustCommand(t, "ACL", "SETUSER", "deaf", "reset", "on", ">secret", "~*", "+@all", "-subscribe")
	quorum := []string{"HOLDFAST_NODES=" + nodes(t)}
	for _, client := range clientsFor(1) {
		for kind, env := range map[string][]string{"single": at(s.Addr()), "quorum": quorum} {
			t.Run(client+"/"+kind, func(t *testing.T) {
				t.Parallel()
				env := append(env, "HOLDFAST_CLIENT="+client)
				name := "told:" + kind + client
				p := hold(t, env, name, "--ttl", "10m")
				awaitListener(t, s, "{"+name+"}:wake:broken", kind == "quorum")
				must(t, env, "release", "--force", name)
				p.loses(t) // its command sleeps for longer than the test has patience
			})
		}
	}
	t.Run("leader", func(t *testing.T) {
		t.Parallel()
		p := begin(t, at(s.Addr()), "leader", "told:leader", "--ttl", "10m", "--", "sh", "-c", "echo ready; exec sleep 600")
		p.line(t)
		awaitListener(t, s, "{told:leader}:wake:broken", false)
		must(t, at(s.Addr()), "release", "--force", "told:leader")
		check.Eventually(t, "the leader loses the lead", func() bool { return strings.Contains(p.stderr.String(), "was lost") })
		p.line(t) // it leads again
		p.terminate(t)
	})
	must(t, at("deaf:secret@"+s.Addr()), "run", "told:deaf", "--", "true") // without permission to subscribe
}

// lateSubscriber is a driver that calls before, before it subscribes. An error of before is the
// subscription's.
type lateSubscriber struct {
	driver.Driver
	before func() error
}

func (d lateSubscriber) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	if err := d.before(); err != nil {
		return nil, err
	}
	return d.Driver.Subscribe(ctx, channel)
}

// A holder notices a release between its acquire and its subscription as well, even if a first
// subscription fails.
func TestReleaseBeforeSubscription(t *testing.T) {
	t.Parallel()
	s := locker.Must(dialGoredis(credentials{target: target{network: "tcp", addrs: []string{shared.Get(t).Addr()}}}))
	t.Cleanup(connection{s}.close)
	bare := locker.Must(newStrategy(s.drv, "single", 0, ""))
	failed := false
	drv := lateSubscriber{s.drv, func() error {
		if !failed {
			failed = true
			return io.ErrUnexpectedEOF
		}
		locker.Must(locker.Break(t.Context(), bare, "told:early"))
		return nil
	}}
	l := breakable{Locker: bare, c: connection{{drv: drv}}}
	lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "told:early", TTL: time.Hour}))
	check.Eventually(t, "the lock is lost", func() bool { return check.Closed(lock.Done()) })
	check.Is(t, lock.Err(), locker.ErrLost)
}

// awaitListener waits until a connection is subscribed to a channel, or three in a quorum.
func awaitListener(t *testing.T, s *redistest.Server, channel string, quorum bool) {
	t.Helper()
	want := int64(1)
	if quorum {
		want = 3
	}
	check.Eventually(t, "the holder listens", func() bool {
		pair, _ := s.MustCommand(t, "PUBSUB", "NUMSUB", channel).([]any)
		return len(pair) == 2 && pair[1].(int64) >= want
	})
}

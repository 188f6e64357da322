//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A holder whose hold is ended by release notices long before its next renewal, over each client
// and in a quorum. Without permission to subscribe it runs as well.
func TestReleaseTellsHolder(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	s.MustCommand(t, "ACL", "SETUSER", "deaf", "reset", "on", ">secret", "~*", "+@all", "-subscribe")
	quorum := []string{"HOLDFAST_NODES=" + nodes(t)}
	for _, client := range clientNames() {
		for kind, env := range map[string][]string{"single": at(s.Addr()), "quorum": quorum} {
			t.Run(client+"/"+kind, func(t *testing.T) {
				t.Parallel()
				env := append(env, "HOLDFAST_CLIENT="+client)
				name := "told:" + kind + client
				p := begin(t, env, "run", name, "--ttl", "10m", "--", "sh", "-c", "echo ready; exec sleep 60")
				p.line(t)
				awaitListener(t, s, "{"+name+"}:wake:broken", kind == "quorum")
				begun := time.Now()
				if _, errs, status := run(t, env, "release", "--force", name); status != 0 {
					t.Fatalf("status %d: %s", status, errs)
				}
				if _, status := p.end(t); status != statusLost || time.Since(begun) > time.Minute {
					t.Errorf("the holder ends with %d after %v: %s", status, time.Since(begun), p.stderr)
				}
			})
		}
	}
	if _, errs, status := run(t, at("deaf:secret@"+s.Addr()), "run", "told:deaf", "--", "true"); status != 0 {
		t.Errorf("without permission to subscribe: status %d: %s", status, errs)
	}
}

// awaitListener waits until a connection is subscribed to a channel, or three in a quorum.
func awaitListener(t *testing.T, s *redistest.Server, channel string, quorum bool) {
	t.Helper()
	want := int64(1)
	if quorum {
		want = 3
	}
	eventually(t, "the holder listens", func() bool {
		pair, _ := s.MustCommand(t, "PUBSUB", "NUMSUB", channel).([]any)
		return len(pair) == 2 && pair[1].(int64) >= want
	})
}

package redistest_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestSentinelFindsANewMaster(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]redistest.Options{
		"plain":    {},
		"password": {Password: `p 'q'`},
		"TLS":      {TLS: redistest.MutualTLS},
	}, func(t *testing.T, opts redistest.Options) {
		s := redistest.StartSentinel(t, opts)
		if len(s.Servers()) != 3 || len(s.SentinelAddrs()) != 3 || s.SentinelAddrs()[2] != s.Sentinels()[2].Addr() {
			t.Errorf("servers %d, Sentinels %v", len(s.Servers()), s.SentinelAddrs())
		}
		first, err := s.Master(t.Context())
		check.Must(t, err)
		check.Equal(t, "first master", first.Addr(), s.Servers()[0].Addr())
		conn, err := first.Dial(t.Context())
		check.Must(t, err)
		defer conn.Close()
		check.Must(t, check.ErrOf(conn.Do("SET", "k", "v")))
		inSync, err := conn.Do("WAIT", 2, 60_000) // for the writes of its connection
		check.Must(t, err)
		check.Equal[any](t, "replicas in sync", inSync, int64(2))
		killed, err := s.KillMaster(t.Context())
		check.Must(t, err)
		if killed != first || killed.Running() {
			t.Errorf("killed %s instead of %s, or it still runs", killed.Addr(), first.Addr())
		}
		second, err := s.WaitSuccessor(t.Context(), killed)
		check.Must(t, err)
		if got := second.MustCommand(t, "GET", "k"); got != "v" || second == first {
			t.Errorf("GET at the new master %s: %v", second.Addr(), got)
		}
	})
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, redistest.Options{})
	old := s.Servers()[0]
	master, err := s.Failover(t.Context())
	check.Must(t, err)
	if master == old || !old.Running() {
		t.Errorf("new master %s, old one %s runs: %v", master.Addr(), old.Addr(), old.Running())
	}
	check.Must(t, s.Sentinels()[0].Kill())
	if m, err := s.Master(t.Context()); err != nil || m != master {
		t.Errorf("asked without the first Sentinel: %v, %v", m, err)
	}
}

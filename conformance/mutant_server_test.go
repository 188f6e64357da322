package conformance

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// neverReconnects dials a driver that sends nothing after its first failed connection.
func neverReconnects(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	var dead atomic.Pointer[error]
	eval := func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
		if err := dead.Load(); err != nil {
			return driver.Reply{}, driver.Permanent(driver.NotSent(*err))
		}
		reply, err := d.Eval(ctx, s, keys, args)
		if err != nil && driver.CodeOf(err) == "" {
			dead.Store(&err)
		}
		return reply, err
	}
	d := suitetest.Driver{OnEval: eval}
	return d.Dial(tb, suite.Target(target))
}

// The mutants of cases beyond miniredis.
func TestMutantsOnServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes real servers")
	}
	reviving, publishes, tries := oneKey, oneKey, oneKey
	reviving.renew = luaRevive
	publishes.onceOnly, tries.onceOnly = true, true
	publishes.release = `redis.call('PUBLISH', ARGV[6], '') ` + luaStringRelease
	tries.release = strings.Replace(luaStringRelease, "redis.call('PUBLISH'", "redis.pcall('PUBLISH'", 1)
	for name, m := range map[string]struct {
		flawed, sound *Harness // sound may be nil: the strategies over a sound driver
		caught        []string
	}{
		"a driver that never connects again": {flawed: &Harness{Dial: neverReconnects}, caught: []string{
			"connections may be killed while a lock is held", "a server that restarts with its data keeps its locks",
		}},
		"a renewal that revives": {
			reviving.harness(Capabilities{}), oneKey.harness(Capabilities{}), []string{"a server that restarts empty loses its locks"},
		},
		"background work that is dropped": {flawed: &Harness{Dial: dialIdle}, caught: []string{"a frozen server leaves no key"}},
		"a release that must be published": {
			publishes.harness(Capabilities{}), tries.harness(Capabilities{}), []string{"a release that may not publish still releases"},
		},
		"a waiter that relies on its subscription": {
			flawed: &Harness{Dial: plain, waits: attemptsOnMessages}, caught: []string{"a user who may not subscribe polls"},
		},
		"a refusal with the whole value": {
			flawed: scriptsWith(t, "return refuse(#found > most and '' or found, left)", "return refuse(redis.call('GET', KEYS[1]), left)"),
			caught: []string{"a huge foreign value is not read"},
		},
		"an error reply taken for a command that was not sent": {
			flawed: flawedDriver(suitetest.Mapped(errorReplyNotSent)), caught: []string{"waiters outlive the move of a slot"},
		},
	} {
		for _, caught := range m.caught {
			t.Run(name+"/"+caught, func(t *testing.T) {
				t.Parallel()
				if r := onServer(t, cmp.Or(m.sound, &Harness{Dial: plain}), caught, time.Minute); r.Failed() {
					t.Fatalf("without the flaw it fails too: %s", r.First())
				}
				r := onServer(t, m.flawed, caught, 10*time.Second) //realtime:ok it is to fail
				if !r.Failed() {
					t.Fatal("not caught")
				}
				t.Logf("caught: %s", r.First())
			})
		}
	}
}

// onServer runs a case on a server of its own. limit bounds the case's waits.
func onServer(t *testing.T, h *Harness, name string, limit time.Duration) *suite.Recorder {
	s := h.suite()
	srv, c := serverFor(t, s, name)
	return suite.Record(t.Context(), name, func(tb testing.TB) {
		s.RunOn(tb, &suite.Case{LeavesKeys: true, Run: func(t *suite.T) {
			ctx, cancel := context.WithTimeout(t.Ctx, 3*limit)
			defer cancel()
			t.Ctx, t.Limit = ctx, limit
			c.Run(t)
		}}, srv)
	})
}

// serverFor returns a case, and a server for it.
func serverFor(t *testing.T, s *suite.Suite, name string) (*suite.Server, *suite.Case) {
	if c := s.Find(name, suite.Single); c != nil {
		return suite.StartReal(t, redistest.Options{}), c
	}
	cluster := redistest.StartCluster(t, suite.ClusterSize, redistest.Options{})
	target := suite.Target{Kind: suite.Cluster, Addrs: cluster.Addrs()}
	return &suite.Server{Cluster: cluster, Target: target}, s.Find(name, suite.Cluster)
}

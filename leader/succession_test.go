package leader_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// strategies make an exclusive strategy over one driver for each server.
var strategies = []struct {
	name    string
	servers int
	open    func(drivers []driver.Driver) (locker.Locker, error)
}{
	{"single", 1, func(d []driver.Driver) (locker.Locker, error) { return single.New(d[0], single.Config{}) }},
	{"single, fair", 1, func(d []driver.Driver) (locker.Locker, error) { return single.New(d[0], single.Config{Fair: true}) }},
	{"reentrant", 1, func(d []driver.Driver) (locker.Locker, error) { return reentrant.New(d[0], reentrant.Config{}) }},
	{"rwhash", 1, func(d []driver.Driver) (locker.Locker, error) { return rwhash.New(d[0], rwhash.Config{}) }},
	{"redlock", 3, func(d []driver.Driver) (locker.Locker, error) {
		var nodes []locker.Locker
		for _, drv := range d {
			nodes = append(nodes, locker.Must(single.New(drv, single.Config{})))
		}
		return redlock.New(nodes, redlock.Config{})
	}},
}

// Of several Candidates one leads. When it stops, another one leads at once, in a higher term; when
// it is cut off, after its TTL. An observer sees each of them.
func TestSuccession(t *testing.T) {
	t.Parallel()
	for i, client := range clients.All {
		for j, strategy := range strategies {
			if j%len(clients.All) != i && !effort.Full() {
				continue
			}
			t.Run(client.Name+"/"+strategy.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var servers []*miniredis.Miniredis
					for range strategy.servers {
						servers = append(servers, clients.NewMemory(t))
					}
					open := func() locker.Locker {
						var drivers []driver.Driver
						for _, m := range servers {
							drivers = append(drivers, openMemory(t, client, m))
						}
						return locker.Must(strategy.open(drivers))
					}
					const ttl = 10 * time.Second
					seen := observe(t, open())
					if got := <-seen; got != (leader.Leader{}) {
						t.Errorf("the first look yields %+v", got)
					}
					a := run(t, wrap(open()), leader.Config{TTL: ttl, Note: "a"})
					term := a.leads()
					a.isLeader(term)
					expect(t, seen, leader.Leader{Note: "a", Term: term})
					b := run(t, wrap(open()), leader.Config{TTL: ttl, Note: "b"})
					time.Sleep(5 * ttl) //nolint:forbidigo // fake time
					a.isLeader(term)
					b.isLeader(0)

					stopped := time.Now()
					a.stop()
					match(t, a.result())
					a.isLeader(0)
					next := b.leads()
					if took := time.Since(stopped); took > time.Second {
						t.Errorf("the next leader began %v after the step-down", took)
					}
					if next <= term {
						t.Errorf("term %d after %d", next, term)
					}
					b.isLeader(next)
					expect(t, seen, leader.Leader{Note: "b", Term: next})

					a.again()
					time.Sleep(ttl)             //nolint:forbidigo // fake time
					for _, m := range servers { // as if the server had lost its data
						m.Del(name)
					}
					last := waitForOne(t, a, b)
					if last <= next {
						t.Errorf("term %d after %d", last, next)
					}
					a.stop()
					b.stop()
					_, _ = a.result(), b.result()
					time.Sleep(time.Minute) //nolint:forbidigo // fake time: what the nodes of a quorum clean up ends
				})
			})
		}
	}
}

// waitForOne waits until a Candidate leads.
func waitForOne(t *testing.T, a, b *runner) int64 {
	t.Helper()
	select {
	case term := <-a.terms:
		return term
	case term := <-b.terms:
		return term
	case <-time.After(time.Minute):
		t.Fatal("nobody leads")
		return 0
	}
}

// observe sends what Observe yields, until the test ends.
func observe(t *testing.T, l locker.Locker) <-chan leader.Leader {
	t.Helper()
	seen := make(chan leader.Leader, 100)
	go func() {
		for now, err := range leader.Observe(t.Context(), l, name, 0) {
			if err != nil {
				t.Errorf("Observe: %v", err)
			}
			seen <- now
		}
	}()
	return seen
}

// expect waits until want is seen. In between nobody may lead.
func expect(t *testing.T, seen <-chan leader.Leader, want leader.Leader) {
	t.Helper()
	for {
		select {
		case got := <-seen:
			if got == want {
				return
			}
			if got != (leader.Leader{}) {
				t.Errorf("saw %+v, want %+v", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("never saw %+v", want)
		}
	}
}

// openMemory makes a driver over a client in memory. t closes both.
func openMemory(t *testing.T, client clients.Client, m *miniredis.Miniredis) driver.Driver {
	t.Helper()
	drv, closeClient, err := client.InMemory(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = drv.Close()
		_ = closeClient()
	})
	return drv
}

package machines

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const (
	nodes  = 3
	needed = 2
)

func TestRedlock(t *testing.T) {
	t.Parallel()
	walkQuorum(t, true, func(over []locker.Locker) (locker.Locker, error) {
		return redlock.New(over, redlock.Config{Quorum: needed})
	})
}

// quorum is one walk over a quorum of servers. Commands of its nodes have no order among each
// other, and the model needs none.
type quorum struct {
	walker
	srvs [nodes]*server
	down [nodes]bool

	holds   []*part
	smudged map[string]bool // owners with a failed resume: a node may stay locked without a holder until its TTL
	foreign [nodes]time.Time
	haunted time.Time // until then a failed operation may arrive, or be cleaned up
	fence   int64     // the highest fencing token so far
}

// walkQuorum checks walks over a quorum of three nodes of single. resumes: it has handles.
func walkQuorum(t *testing.T, resumes bool, open func([]locker.Locker) (locker.Locker, error)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			first := rapid.IntRange(0, len(clients.All)-1).Draw(t, "client")
			m := &quorum{walker: walker{T: t, script: []string{"clients from " + clients.All[first].Name}}, smudged: map[string]bool{}}
			var over []locker.Locker
			for i := range m.srvs {
				m.srvs[i] = newServer(t, clients.All[(first+i)%len(clients.All)])
				over = append(over, locker.Must(single.New(m.srvs[i].drv, single.Config{})))
			}
			m.l = locker.Must(open(over))
			t.Cleanup(m.rest)
			actions := map[string]func(*rapid.T){
				"":            func(*rapid.T) { m.check() },
				"acquire":     m.acquire,
				"acquire too": m.acquire, // twice as often
				"renew":       m.renew,
				"renew too":   m.renew,
				"release":     m.release,
				"wait":        m.wait,
				"wait too":    m.wait,
				"power":       m.power,
				"restart":     m.restart,
				"foreign":     m.foreigner,
			}
			if resumes {
				actions["resume"] = m.resume
			}
			m.walk(actions, m.end)
		})
	})
}

// troubles are the nodes with possible faults in a step, in the order of preference of a shrunk
// script.
var troubles = [][]int{{}, {}, {}, {}, {0}, {1}, {2}, {0, 1}, {1, 2}}

// quorumStep is one completed operation.
type quorumStep struct {
	step
	calm bool             // nothing from before may come
	bad  [nodes]bool      // the node may have failed
	keys [nodes]quorumKey // as they were before
}

// quorumKey is the content of the key of one node.
type quorumKey struct {
	value, owner string // owner: "" if a foreign library has it
	till         time.Time
}

func (m *quorum) keys() (all [nodes]quorumKey) {
	for i, s := range m.srvs {
		if value, err := s.Get(name); err == nil {
			k := quorumKey{value: value, till: time.Now().Add(s.TTL(name))}
			if words := strings.Split(value, "|"); len(words) == 3 {
				k.owner = words[1]
			}
			all[i] = k
		}
	}
	return all
}

func (s *quorumStep) faulted() bool { return s.bad != [nodes]bool{} }

// count returns the number of nodes without a failure that satisfy ok.
func (s *quorumStep) count(ok func(i int, k quorumKey) bool) (n int) {
	for i, k := range s.keys {
		if !s.bad[i] && ok(i, k) {
			n++
		}
	}
	return n
}

// perform does op while faults happen to the commands of some nodes, and notes it.
func (m *quorum) perform(t *rapid.T, what string, op func(ctx context.Context) error) *quorumStep {
	s := &quorumStep{step: step{start: time.Now()}, bad: m.down, keys: m.keys()}
	s.calm = !m.haunted.After(s.start)
	for _, i := range rapid.SampledFrom(troubles).Draw(t, "troubles") {
		p := rapid.SampledFrom(plans[6:]).Draw(t, "faults")
		s.bad[i] = true
		m.srvs[i].drv.then(p)
		what += fmt.Sprintf("%v at node %d", p, i)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	s.err = op(inStep(ctx))
	cancel()
	s.end = time.Now()
	synctest.Wait() // for the nodes not awaited by the quorum
	for _, srv := range m.srvs {
		srv.drv.then(plan{})
	}
	m.notef("%s: %s", what, s.step)
	if s.faulted() {
		m.haunt()
	}
	return s
}

// haunt notes that every failure until now may be resent and cleaned up: a send lasts three seconds
// at most, and clean-up is tried each second.
func (m *quorum) haunt() { m.haunted = latest(m.haunted, time.Now().Add(6*time.Second)) }

// rest waits for background work: the quorum has no Close.
func (m *quorum) rest() {
	for _, srv := range m.srvs {
		srv.drv.cut(false)
	}
	m.pass(time.Minute + 10*time.Second)
}

package isolation

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
)

// world is the system of one run: the nodes, and the processes with one shared lock.
type world struct {
	strategy  strategy
	ttl       time.Duration
	nodes     []*node
	processes []*process
	ended     chan struct{}  // closed when the faults end
	faults    sync.WaitGroup // those in progress
}

type node struct {
	*memredis.Server
	number int

	mu      sync.Mutex
	offset  time.Duration // of its clock
	refuses bool          // it answers each command of a lock by an error
}

// newWorld makes the nodes and the processes.
func newWorld(t *testing.T, s strategy, ttl time.Duration) *world {
	t.Helper()
	network := memnet.New()
	network.Latency = latency / 2 // from the client to the proxy, and from there to the server
	w := &world{strategy: s, ttl: ttl, ended: make(chan struct{})}
	for i := range s.nodes {
		n := &node{Server: memredis.Start(t, network), number: i}
		n.Server.Server().SetPreHook(n.before)
		w.nodes = append(w.nodes, n)
	}
	for i := range processes {
		w.processes = append(w.processes, newProcess(t, w, clients.WithFork[i%len(clients.WithFork)]))
	}
	t.Cleanup(w.close)
	return w
}

// close closes the drivers and then the clients. Between them it lets things settle: rueidis and
// valkey-go wait for an answer under a mutex, and fake time stands still while another goroutine
// waits for this mutex.
func (w *world) close() {
	for _, p := range w.processes {
		for _, drv := range p.drivers {
			_ = drv.Close() // a fault may have closed it
		}
	}
	sleep(time.Second)
	for _, p := range w.processes {
		for _, closeClient := range p.closes {
			closeClient()
		}
	}
}

// before is called before each command. It sets a node's stepped clock. Commands of a script find
// the server locked: SET with NX is not among them.
func (n *node) before(peer *server.Peer, cmd string, args ...string) bool {
	nx := cmd == "SET" && len(args) > 2 && strings.EqualFold(args[2], "NX")
	if !nx && cmd != "EVAL" && cmd != "EVALSHA" {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refuses {
		peer.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
	}
	if n.offset != 0 {
		n.SetTime(time.Now().Add(n.offset))
	}
	return n.refuses
}

// stepBack steps the clock of a node back. Keys expire by its clock.
func (n *node) stepBack(by time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.offset -= by
	n.SetTime(time.Now().Add(n.offset))
	n.FastForward(-by) // else miniredis would expire keys as before
}

// refuse makes a node refuse each command of a lock.
func (n *node) refuse() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuses = true
}

// run lets all processes work, and lets the fault happen after the warm-up. It returns the healthy
// processes' work from then on.
func (w *world) run(happen func(*world)) result {
	ctx, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for _, p := range w.processes {
		for i := range p.callers {
			callers.Go(func() { p.work(ctx, w.strategy, i) })
		}
	}
	sleep(warmUp)
	began := time.Now()
	happen(w)
	sleep(measured)
	r := w.result(began)
	stop()
	w.heal()
	callers.Wait()
	return r
}

// heal ends the faults.
func (w *world) heal() {
	close(w.ended)
	w.faults.Wait()
	for _, p := range w.processes {
		for _, link := range p.links {
			link.Thaw()
			link.Filter(nil)
			link.Slow(0)
			link.Latency(0)
			_ = link.Accept()
		}
		p.frozen.Store(false)
	}
}

// pause waits for d. It returns false if the faults end.
func (w *world) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.ended:
		return false
	}
}

// again calls f now and every d, until the faults end.
func (w *world) again(d time.Duration, f func()) {
	f()
	w.faults.Go(func() {
		for w.pause(d) {
			f()
		}
	})
}

// result is the healthy processes' work.
type result struct {
	holds   int
	longest time.Duration // wait
	errs    []error
}

func (w *world) result(since time.Time) (r result) {
	for _, p := range w.processes[1:] {
		for i := range p.callers {
			p.callers[i].add(&r, since)
		}
	}
	return r
}

func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time

func (n *node) forgetScripts() {
	n.Server.Server().Dispatch(server.NewPeer(bufio.NewWriter(io.Discard)), []string{"SCRIPT", "FLUSH"})
}

// full reports whether the healthy processes hold every permit, so nobody else can hold.
func (w *world) full() bool {
	exclusive := int32(0)
	for _, p := range w.processes[1:] {
		exclusive += p.exclusive.Load()
	}
	return int(exclusive) == w.strategy.permits
}

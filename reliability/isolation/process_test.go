package isolation

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// process is a process with drivers, a client for each node, and a Locker of its own.
type process struct {
	world   *world
	links   []*faultproxy.Proxy // one to each node
	drivers []driver.Driver
	closes  []func() // to close its clients
	locker  locker.Locker

	frozen    atomic.Bool // its callers do not go on
	hopeless  atomic.Bool // its callers have hopeless deadlines
	trace     atomic.Pointer[locktrace.Trace]
	holding   atomic.Pointer[func()] // called at the next acquisition
	holds     atomic.Int32           // number of its holds
	exclusive atomic.Int32           // those not shared
	callers   []caller
}

func newProcess(t *testing.T, w *world, client clients.Client) *process {
	t.Helper()
	p := &process{world: w, callers: make([]caller, w.strategy.callers)}
	for _, n := range w.nodes {
		link := faultproxy.StartOn(t, n.Net, n.Addr())
		owner := &cleanups{TB: t}
		drv, err := client.Dial(owner, drivertest.Target{
			Kind: drivertest.Memory, Addrs: []string{link.Addr()}, Miniredis: true, Dial: n.Net.Dial,
		})
		if err != nil {
			t.Fatalf("%s: %v", client.Name, err)
		}
		p.links, p.drivers, p.closes = append(p.links, link), append(p.drivers, drv), append(p.closes, owner.run)
	}
	var err error
	if p.locker, err = w.strategy.locker(p.drivers); err != nil {
		t.Fatal(err)
	}
	return p
}

// cleanups is the testing.TB of a client that may be closed before the test ends.
type cleanups struct {
	testing.TB
	list []func()
}

func (c *cleanups) Cleanup(f func()) { c.list = append(c.list, f) }

func (c *cleanups) run() {
	for _, f := range slices.Backward(c.list) {
		f()
	}
	c.list = nil
}

// work acquires and releases until ctx ends.
func (p *process) work(ctx context.Context, s strategy, number int) {
	req := locker.Request{Name: name, TTL: p.world.ttl}
	if s.readers && number == 0 {
		req.Mode = locker.Shared
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		c := &p.callers[number]
		c.begin()
		lock, err := p.acquire(ctx, req, turn)
		c.end(ctx, err)
		if err != nil {
			p.world.pause(rest)
			continue
		}
		p.hold(req.Mode)
		c.fail(ctx, lock.Release(context.WithoutCancel(ctx)))
		sleep(s.pause)
	}
}

// acquire acquires with the trace of the process, and with hopeless deadlines if it has such.
func (p *process) acquire(ctx context.Context, req locker.Request, turn int) (*locker.Lock, error) {
	p.pass()
	if t := p.trace.Load(); t != nil {
		ctx = locktrace.With(ctx, t)
	}
	if p.hopeless.Load() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(turn%11)*5*time.Millisecond)
		defer cancel()
	}
	return p.locker.Acquire(ctx, req)
}

// hold holds the lock for a while, longer if the process is frozen.
func (p *process) hold(mode locker.Mode) {
	p.holds.Add(1)
	defer p.holds.Add(-1)
	if mode == locker.Exclusive {
		p.exclusive.Add(1)
		defer p.exclusive.Add(-1)
	}
	if f := p.holding.Swap(nil); f != nil {
		(*f)()
	}
	sleep(p.world.strategy.held)
	p.pass()
}

// pass returns once the process is not frozen.
func (p *process) pass() {
	if p.frozen.Load() {
		<-p.world.ended
	}
}

// caller is a goroutine of acquires and releases.
type caller struct {
	mu      sync.Mutex
	waiting time.Time // since when; zero: it does not wait
	waits   []wait
	errs    []error
}

// wait is a wait with a hold at its end.
type wait struct {
	ended time.Time
	took  time.Duration
}

func (c *caller) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = time.Now()
}

func (c *caller) end(ctx context.Context, err error) {
	c.mu.Lock()
	now, began := time.Now(), c.waiting
	c.waiting = time.Time{}
	if err == nil {
		c.waits = append(c.waits, wait{now, now.Sub(began)})
	}
	c.mu.Unlock()
	c.fail(ctx, err)
}

func (c *caller) fail(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		c.errs = append(c.errs, err)
	}
}

// add adds the caller's work since a time to r.
func (c *caller) add(r *result, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waits {
		if w.ended.After(since) {
			r.holds++
			r.longest = max(r.longest, w.took)
		}
	}
	if !c.waiting.IsZero() {
		r.longest = max(r.longest, time.Since(c.waiting))
	}
	r.errs = append(r.errs, c.errs...)
}

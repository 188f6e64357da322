package redlock_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

func lockers(n int) []locker.Locker {
	nodes := make([]locker.Locker, n)
	for i := range nodes {
		nodes[i] = lockertest.New()
	}
	return nodes
}

// wantInvalid demands an *InvalidError for the field what.
func wantInvalid(t *testing.T, err error, what string) {
	t.Helper()
	match(t, err, locker.ErrInvalid)
	if bad, ok := errors.AsType[*locker.InvalidError](err); !ok || !strings.Contains(bad.What, what) || bad.Got == "" || bad.Allowed == "" {
		t.Errorf("error %v, want one that says what is wrong with %s", err, what)
	}
}

// wraps is a Locker around another, as middleware is.
type wraps struct{ locker.Locker }

func (w wraps) Unwrap() locker.Locker { return w.Locker }

// counted is a Locker of a semaphore.
type counted struct{ locker.Locker }

func (counted) Traits() lease.Traits { return lease.Traits{Permits: 1} }

// reenters is a Locker of a reentrant strategy.
type reenters struct{ locker.Locker }

func (reenters) Traits() lease.Traits { return lease.Traits{Reentrant: true} }

// A quorum is reentrant if its nodes are, even if the middleware around one hides that.
func TestReenters(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]bool{"no": false, "all": true, "one is hidden": true} {
		nodes := lockers(3)
		for i := range nodes {
			if want && (i > 0 || what == "all") {
				nodes[i] = wraps{reenters{nodes[i]}}
			}
		}
		check.Equal(t, what, locker.Must(redlock.New(nodes, redlock.Config{})).Traits().Reentrant, want)
	}
	check.Equal(t, "the zero Locker is reentrant", new(redlock.Locker).Traits().Reentrant, false)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	once := lockertest.New()
	type test struct {
		nodes []locker.Locker
		cfg   redlock.Config
		what  string
	}
	check.Each(t, map[string]test{
		"no nodes":          {nil, redlock.Config{}, "nodes"},
		"a nil node":        {[]locker.Locker{lockertest.New(), nil, lockertest.New()}, redlock.Config{}, "nodes[1]"},
		"a node twice":      {[]locker.Locker{once, lockertest.New(), once}, redlock.Config{}, "nodes[2]"},
		"a quorum":          {append(lockers(2), wraps{locker.Must(redlock.New(lockers(3), redlock.Config{}))}), redlock.Config{}, "nodes[2]"},
		"a semaphore":       {append(lockers(2), counted{lockertest.New()}), redlock.Config{}, "nodes[2]"},
		"half a quorum":     {lockers(4), redlock.Config{Quorum: 2}, "Quorum"},
		"a minority":        {lockers(5), redlock.Config{Quorum: 2}, "Quorum"},
		"more than all":     {lockers(3), redlock.Config{Quorum: 4}, "Quorum"},
		"a negative quorum": {lockers(3), redlock.Config{Quorum: -1}, "Quorum"},
		//realtime:ok it is refused
		"a short TTL":         {lockers(3), redlock.Config{TTL: time.Microsecond}, "TTL"},
		"a long TTL":          {lockers(3), redlock.Config{TTL: locker.MaxTTL + 1}, "TTL"},
		"a negative TTL":      {lockers(3), redlock.Config{TTL: -time.Second}, "TTL"},
		"a negative validity": {lockers(3), redlock.Config{MinValidity: -1}, "MinValidity"},
		//realtime:ok it is refused
		"a validity of all the TTL":     {lockers(3), redlock.Config{TTL: time.Second, MinValidity: time.Second}, "MinValidity"},
		"a validity of the default TTL": {lockers(3), redlock.Config{MinValidity: locker.DefaultTTL}, "MinValidity"},
		"a short timeout":               {lockers(3), redlock.Config{AttemptTimeout: time.Microsecond}, "AttemptTimeout"},
		"a negative timeout":            {lockers(3), redlock.Config{AttemptTimeout: -1}, "AttemptTimeout"},
		"a negative jitter":             {lockers(3), redlock.Config{WakeJitter: -1}, "WakeJitter"},
		"names for some":                {lockers(3), redlock.Config{Names: []string{"a", "b"}}, "Names"},
		"names for more":                {lockers(1), redlock.Config{Names: []string{"a", "b"}}, "Names"},
	}, func(t *testing.T, tc test) {
		l, err := redlock.New(tc.nodes, tc.cfg)
		check.Equal(t, "Locker", l, nil)
		wantInvalid(t, err, tc.what)
	})
}

// An invalid Request reaches no node.
func TestAcquireRefuses(t *testing.T) {
	inMemory(t, 3, redlock.Config{MinValidity: time.Second}, func(t *testing.T, c *cluster) {
		foreign := func(token string) locker.Handle {
			return locker.NewLock(context.Background(), lease.HoldInfo{Name: name, Token: token, TTL: ttl}, nil).Handle()
		}
		wire := func(text string) locker.Handle {
			return foreign("redlock1." + base64.RawURLEncoding.EncodeToString([]byte(text)))
		}
		for what, req := range map[string]locker.Request{
			"Request.Name": {},
			"Request.Mode": {Name: name, Mode: 7},
			//realtime:ok it is refused
			"Request.TTL":    {Name: name, TTL: time.Second}, // MinValidity would use it up
			"Request.Resume": {Name: name, Resume: foreign(lease.NewToken())},
		} {
			_, err := c.Acquire(t.Context(), req)
			wantInvalid(t, err, what)
			if op, ok := errors.AsType[*locker.OpError](err); !ok || op.Name != req.Name {
				t.Errorf("%v is no *OpError", err)
			}
		}
		for _, h := range []locker.Handle{
			foreign("redlock1."), foreign("redlock1.%"), foreign("redlock2.bm8"), wire(""), wire("[]"), wire(`{"Nodes":7}`),
			wire(`{}`), wire(`{"Nodes":["YQ==","YQ=="]}`), wire(`{"Nodes":["YQ==","YQ==","YQ==","YQ=="]}`),
		} {
			wantInvalid(t, check.ErrOf(locker.Resume(t.Context(), c, h)), "Request.Resume")
		}
		_, err := c.Acquire(nil, locker.Request{Name: name}) //nolint:staticcheck // that is the test
		wantInvalid(t, err, "ctx")
		match(t, check.ErrOf(c.Acquire(t.Context(), locker.Request{Name: name, Permits: 2})), errors.ErrUnsupported)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		match(t, check.ErrOf(c.Acquire(ctx, locker.Request{Name: name})), context.Canceled)
		for _, n := range c.n {
			check.Equal(t, "acquires at a node", n.count("acquire")+n.count("resume"), 0)
		}
	})
}

// Without names, a node is named by its server's address, once an attempt or a lock reports it.
func TestNodesAreNamedByAddress(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		nodes := make([]locker.Locker, 3)
		for i, n := range c.n {
			nodes[i] = locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				if i == 0 {
					locktrace.From(ctx).Attempt(ctx, locktrace.AttemptInfo{Source: locktrace.Source{Address: "told by an attempt"}})
				}
				return n.Acquire(locktrace.Without(ctx), req)
			})
		}
		l := locker.Must(redlock.New(nodes, redlock.Config{}))
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Attempt: func(context.Context, locktrace.AttemptInfo) {}})
		succeeds(t, locker.Must(l.Acquire(ctx, locker.Request{Name: name})).Release(ctx))
		for i, n := range c.n {
			n.down, n.delay = errDown, time.Duration(i)*ms
		}
		_, err := l.Acquire(ctx, locker.Request{Name: name})
		missed, _ := errors.AsType[*redlock.QuorumError](err)
		for i, want := range []string{"told by an attempt", "mem:1", "mem:2"} {
			check.Equal(t, "name of a node", missed.Nodes[i].Name, want)
		}
	})
}

// closing is a node whose driver a test closes.
type closing struct {
	locker.Locker
	onClose map[int]func()
}

func (c *closing) OnClose(f func()) (stop func() bool) {
	i := len(c.onClose)
	c.onClose[i] = f
	return func() bool { delete(c.onClose, i); return true }
}

// OnClose is called once the remaining nodes are no quorum.
func TestOnClose(t *testing.T) {
	t.Parallel()
	drivers, nodes := make([]*closing, 5), make([]locker.Locker, 5)
	for i := range nodes {
		drivers[i] = &closing{onClose: map[int]func(){}}
		nodes[i] = drivers[i]
	}
	l := locker.Must(redlock.New(nodes, redlock.Config{}))
	closed, stopped := 0, 0
	l.OnClose(func() { closed++ })
	stop := l.OnClose(func() { stopped++ })
	for i, d := range drivers {
		if i == 2 {
			check.Equal(t, "stop came in time", stop(), true)
		}
		for _, f := range d.onClose {
			f()
		}
		check.Equal(t, "calls of OnClose", closed, min(i/2, 1))
	}
	check.Equal(t, "calls after stop", stopped, 0)
}

// overLease returns a lock over another Lease.
func overLease(fence int64, l lease.Lease) func(*locker.Lock) *locker.Lock {
	return func(lock *locker.Lock) *locker.Lock {
		return locker.NewLock(bg, lease.HoldInfo{
			Name: lock.Name(), Token: "t", TTL: lock.TTL(), Deadline: lock.Deadline(), Fence: fence,
		}, l)
	}
}

type panicking struct{}

func (panicking) Do(context.Context, lease.Op) (lease.Result, error) { panic("a lease's own") }

// A fault in a node's own code is a failure of the node. Nobody else could recover a panic in a
// goroutine of redlock.
func TestFaultsOfNodesAreErrors(t *testing.T) {
	t.Parallel()
	type test struct {
		change func(*locker.Lock) *locker.Lock
		says   string
	}
	check.EachInFakeTime(t, map[string]test{
		"a lost lock":       {func(l *locker.Lock) *locker.Lock { l.Hold().MarkLost(errDown); return l }, "its lock had ended"},
		"a released lock":   {func(l *locker.Lock) *locker.Lock { _ = l.Release(bg); return l }, "its lock had ended"},
		"the zero lock":     {func(*locker.Lock) *locker.Lock { return &locker.Lock{} }, "without a Lease"},
		"no lock":           {func(*locker.Lock) *locker.Lock { return nil }, "neither a lock nor an error"},
		"a shared lock":     {func(l *locker.Lock) *locker.Lock { _ = l.Downgrade(bg); return l }, "its lock is shared"},
		"a negative token":  {overLease(-1, panicking{}), "no fencing token"},
		"no lease":          {overLease(1, nil), "without a Lease"},
		"a panic":           {func(*locker.Lock) *locker.Lock { panic("a node's own") }, "it panicked: a node's own"},
		"a panicking lease": {overLease(0, panicking{}), ""},
	}, func(t *testing.T, tt test) {
		var nodes []locker.Locker
		for range 3 {
			inner := lockertest.New()
			nodes = append(nodes, locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				lock, err := inner.Acquire(ctx, req)
				return tt.change(lock), err
			}))
		}
		l := locker.Must(redlock.New(nodes, redlock.Config{}))
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Fenced: tt.says == "no fencing token"})
		if tt.says == "" {
			match(t, err)
			for _, op := range []func(context.Context) error{lock.Downgrade, lock.Release} {
				if err := op(t.Context()); err == nil || !strings.Contains(err.Error(), "it panicked: a lease's own") {
					t.Errorf("an operation: %v, want what its Lease panicked with", err)
				}
			}
			return
		}
		if _, found := errors.AsType[*redlock.NodeError](err); !found || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("acquire: %v, want an error of the nodes that says %q", err, tt.says)
		}
		sleep(time.Minute) // background calls end
	})
}

// A node that hangs is reported once, and once more when it answers again.
func TestHungNodeIsReportedOnce(t *testing.T) {
	inMemory(t, 3, redlock.Config{Names: []string{"a", "b", "c"}}, func(t *testing.T, c *cluster) {
		var mu sync.Mutex
		var events []string
		record := func(what string) func(context.Context, locktrace.NodeInfo) {
			return func(_ context.Context, i locktrace.NodeInfo) {
				mu.Lock()
				defer mu.Unlock()
				events = append(events, fmt.Sprintf("%s node %d of %d at %s, %d fail, for %v: %v", what, i.Node, i.Nodes, i.Name, i.Failing, i.For, i.Err))
			}
		}
		ctx := locktrace.With(t.Context(), &locktrace.Trace{NodeFailing: record("failing"), NodeRecovered: record("recovered")})
		lock := locker.Must(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl}))
		synctest.Wait()
		c.n[1].freeze()
		for range 4 {
			sleep(5 * time.Second)
			succeeds(t, lock.Renew(ctx, 0))
		}
		c.n[1].melt()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		check.EqualSlices(t, "events", events, []string{
			"failing node 1 of 3 at b, 1 fail, for 0s: no answer for 5s",
			"recovered node 1 of 3 at b, 0 fail, for 10s: no answer for 5s",
		})
	})
}

// A callback that blocks holds up no lock. A failure and a recovery during the block are not
// reported.
func TestBlockedNodeCallbackHoldsUpNothing(t *testing.T) {
	inMemory(t, 3, redlock.Config{Names: []string{"a", "b", "c"}}, func(t *testing.T, c *cluster) {
		blocked := make(chan struct{})
		var mu sync.Mutex
		reports := 0
		report := func(context.Context, locktrace.NodeInfo) {
			mu.Lock()
			reports++
			mu.Unlock()
			<-blocked
		}
		ctx := locktrace.With(t.Context(), &locktrace.Trace{NodeFailing: report, NodeRecovered: report})
		for i := range 21 {
			c.n[1].fail([]error{errDown, nil}[i%2])
			start := time.Now()
			match(t, locker.Must(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl})).Release(ctx))
			took(t, start, 0)
			synctest.Wait()
			sleep(2 * time.Second)
		}
		close(blocked)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		check.Equal(t, "reports, of which the first alone is due", reports, 1)
	})
}

package suite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

const (
	// limitInMemory and limit are how long a case waits for an event: in fake time, without slow
	// answers, and on real servers.
	limitInMemory = 11 * time.Second
	limit         = time.Minute
	// PollEvery is the interval of the first polls.
	PollEvery = 2 * time.Millisecond
)

// T is a test of one case, with one server and the means to connect to it.
type T struct {
	testing.TB
	Suite  *Suite
	Server *Server
	Ctx    context.Context // ends with the case, or after five minutes

	LeavesKeys bool          // keys may be left when the case is over
	Limit      time.Duration // of every wait for an event

	made    census
	drivers atomic.Int32 // number of open ones
}

func newT(tb testing.TB, s *Suite, srv *Server) *T {
	ctx, cancel := context.WithTimeout(tb.Context(), 5*limit)
	tb.Cleanup(cancel)
	t := &T{TB: tb, Suite: s, Server: srv, Ctx: ctx, Limit: srv.limit()}
	tb.Cleanup(func() {
		t.leavesNoKey()
		if srv.Mini != nil {
			leavesNoConnection(tb, srv)
		}
	})
	return t
}

// limit returns how long to wait for an event at s.
func (s *Server) limit() time.Duration {
	if s.Target.Dial != nil {
		return limitInMemory
	}
	return limit
}

// Lacks reports whether the adapter is declared to lack f.
func (t *T) Lacks(f Feature) bool { return t.Suite.Lacking(f) }

// Key returns a key of no other case, with a form that clusters spread.
func (t *T) Key() string {
	key := "conformance." + lease.NewToken()
	t.made.made(key)
	return key
}

// Driver makes a driver connected to the server. It is closed at the end of the case, before its
// client.
func (t *T) Driver() driver.Driver {
	t.Helper()
	return t.Dial(t.Server.Target)
}

// Dial makes a driver connected to target, or fails the case.
func (t *T) Dial(target Target) driver.Driver {
	t.Helper()
	if dial := target.Dial; dial != nil {
		var used atomic.Bool
		target.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			used.Store(true)
			return dial(ctx, network, addr)
		}
		t.Cleanup(func() {
			if t.Failed() && !used.Load() {
				t.Logf("the client did not connect by Target.Dial: make that its dialer, or put FeatureDial into Harness.Lacks")
			}
		})
	}
	drv, err := t.Suite.Dial(t.TB, target)
	if err != nil {
		t.Fatalf("Harness.Dial(%s %v): %v", target.Kind, target.Addrs, err)
	}
	t.Suite.connected(drv.Info().Client)
	t.drivers.Add(1)
	t.Cleanup(func() {
		switch err := drv.Close(); {
		case err == nil, errors.Is(err, driver.ErrClosed):
		case errors.Is(err, driver.ErrCleanUpUnfinished) && t.Server.Target.Dial == nil:
			t.LeavesKeys = true // Close waits for three seconds of real time
		default:
			t.Errorf("Driver.Close: %v", err)
		}
		if t.drivers.Add(-1) == 0 {
			t.leavesNoSubscription()
		}
	})
	return drv
}

// InFakeTime reports whether the case runs in fake time. There no answer is slow: only after a fault is
// a command sent again.
func (t *T) InFakeTime() bool { return t.Server.Target.Kind == Memory || t.Server.Double != nil }

// closeTimeout is how long Close of a driver waits for clean-ups.
const closeTimeout = 3 * time.Second

// Close closes drv: see CheckClose.
func (t *T) Close(drv driver.Driver) bool {
	t.Helper()
	began := time.Now()
	return t.CheckClose(t.Call("Close", drv.Close), began)
}

// CheckClose demands that a driver's Close succeeded, and reports whether all is cleaned up. In real
// time the three seconds of Close, which began after began, may not suffice; keys may then be left.
func (t *T) CheckClose(err error, began time.Time) bool {
	t.Helper()
	if !t.InFakeTime() && errors.Is(err, driver.ErrCleanUpUnfinished) && time.Since(began) >= closeTimeout {
		t.LeavesKeys = true
		return false
	}
	t.OK(err, "Close")
	return true
}

// Proxied puts a proxy in front of the server, and makes a driver connected to it.
func (t *T) Proxied() (*faultproxy.Proxy, driver.Driver) {
	t.Helper()
	if t.Server.Given && t.Server.Target.TLS != nil {
		t.Skipf("a proxy cannot see which requests to disturb behind TLS")
	}
	p := t.Server.Proxy(t.TB)
	return p, t.Dial(t.Through(p))
}

// Through returns the server's target with the address of p.
func (t *T) Through(p *faultproxy.Proxy) Target {
	target := t.Server.Target
	target.Addrs = []string{p.Addr()}
	return target
}

// User makes a user with the rules of ACL SETUSER, and returns the server's target with it.
func (t *T) User(name string, rules ...any) Target {
	t.Helper()
	t.Do("", append([]any{"ACL", "SETUSER", name, "on", ">secret"}, rules...)...)
	target := t.Server.Target
	target.Username, target.Password = name, "secret"
	return target
}

// Do sends a command to key's node, around the driver. An error fails the case.
func (t *T) Do(key string, args ...any) any {
	t.Helper()
	if key != "" && writes[fmt.Sprint(args[0])] {
		t.made.wrote(key)
	}
	if t.Server.Given && args[0] == "INFO" {
		t.Skipf("others use the server too, and change what INFO counts")
	}
	reply, err := t.Server.Do(t.Ctx, key, args...)
	if err != nil {
		t.Fatalf("%v: %v", args[0], err)
	}
	return reply
}

// Stored returns the string at key; ok is false if there is none.
func (t *T) Stored(key string) (value string, ok bool) {
	t.Helper()
	switch v := t.Do(key, "GET", key).(type) {
	case nil:
		return "", false
	case string:
		return v, true
	default:
		t.Fatalf("GET replied %T", v)
		return "", false
	}
}

// Exists reports whether there is a key of any type.
func (t *T) Exists(key string) bool {
	t.Helper()
	return t.Do(key, "EXISTS", key) == int64(1)
}

// Results of PTTL if there is no key, or one without an expiry.
const (
	NoKey        = -2 * time.Millisecond
	NeverExpires = -1 * time.Millisecond
)

// PTTL returns the remaining life of a key, NoKey or NeverExpires.
func (t *T) PTTL(key string) time.Duration {
	t.Helper()
	ms, _ := t.Do(key, "PTTL", key).(int64)
	return time.Duration(ms) * time.Millisecond
}

// rounding is how much of a remaining life is lost to servers' whole milliseconds.
const rounding = 3 * time.Millisecond

// Left demands that left is at most life, and at least life minus the time since began.
func (t *T) Left(left, life time.Duration, began time.Time, what string, args ...any) {
	t.Helper()
	if least := life - time.Since(began) - rounding; left > life || left < least {
		t.Errorf("%s: %v are left, want between %v and %v", fmt.Sprintf(what, args...), left, least, life)
	}
}

// OK fails the case on an error.
func (t *T) OK(err error, what string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

// Is demands that err matches target.
func (t *T) Is(err, target error, what string, args ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: got error %v, want one that matches %q", fmt.Sprintf(what, args...), err, target)
	}
}

// Eventually waits until f is true.
func (t *T) Eventually(what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(t.Limit)
	for poll := PollEvery; !f(); poll = min(poll*5/4, 50*PollEvery) {
		if time.Now().After(deadline) {
			t.Fatalf("still not after %v: %s", t.Limit, what)
		}
		t.Pause(poll)
	}
}

// Pause waits for d, or fails the case if its Ctx ends.
func (t *T) Pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Ctx.Done():
		t.Fatalf("the case takes too long: %v", t.Ctx.Err())
	}
}

// Event waits until ch delivers or is closed.
func (t *T) Event(ch <-chan struct{}, what string) {
	t.Helper()
	timer := time.NewTimer(t.Limit)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
		t.Fatalf("still not after %v: %s", t.Limit, what)
	}
}

// Promptly runs f and fails the case if it does not return within t.Limit.
func (t *T) Promptly(what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(t.Limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s: no return after %v", what, t.Limit)
	}
}

// Background runs f in a goroutine, and returns the channel of its error.
func Background(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	return result
}

// Result waits for the error of a function run by Background.
func (t *T) Result(ch <-chan error, what string) error {
	t.Helper()
	timer := time.NewTimer(t.Limit)
	defer timer.Stop()
	select {
	case err := <-ch:
		return err
	case <-timer.C:
		t.Fatalf("%s: no return after %v", what, t.Limit)
		return nil
	}
}

// Call runs f and returns its error, or fails the case if it does not return within t.Limit.
func (t *T) Call(what string, f func() error) error {
	t.Helper()
	return t.Result(Background(f), what)
}

// Happened reports whether a fault has happened.
func Happened(trap *faultproxy.Trap) bool {
	select {
	case <-trap.Hit():
		return true
	default:
		return false
	}
}

// SentOnce demands that the command about key was sent once.
func (t *T) SentOnce(p *faultproxy.Proxy, key, what string) {
	t.Helper()
	if n := p.Sent(key); n != 1 {
		t.Errorf("%s: sent %d times, want once", what, n)
	}
}

// Drain takes an arrived wake-up, if there is one.
func Drain(sub driver.Subscription) {
	select {
	case <-sub.Wake():
	default:
	}
}

// KeepWaiting makes an attempt that must be refused, and keeps its place in the server's queue for a
// minute of real time, instead of five seconds. If those may have passed before, it tries again.
func (t *T) KeepWaiting(name string, attempt func()) {
	t.Helper()
	queue, _ := sibling.Waiters(name)
	for began := time.Now(); ; began = time.Now() {
		attempt()
		if t.InFakeTime() {
			return
		}
		t.Do(queue, "PEXPIRE", queue, 60_000)
		if time.Since(began) < 5*time.Second {
			return
		}
	}
}

// Woken demands a wake-up.
func (t *T) Woken(sub driver.Subscription, what string) {
	t.Helper()
	t.Event(sub.Wake(), "the listener is woken: "+what)
}

// Listeners returns the number of connections subscribed to channel, over all nodes.
func (t *T) Listeners(channel string) int64 {
	t.Helper()
	count := func(reply any, err error) int64 {
		t.OK(err, "PUBSUB NUMSUB")
		pair, _ := reply.([]any)
		if len(pair) != 2 {
			t.Fatalf("PUBSUB NUMSUB replied %v", reply)
		}
		n, _ := pair[1].(int64)
		return n
	}
	if t.Server.Cluster == nil {
		return count(t.Server.Do(t.Ctx, channel, "PUBSUB", "NUMSUB", channel))
	}
	var sum int64
	for _, node := range t.Server.Cluster.Nodes() {
		sum += count(node.Do(t.Ctx, "PUBSUB", "NUMSUB", channel))
	}
	return sum
}

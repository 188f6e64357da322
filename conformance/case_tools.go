package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

const (
	caseLimit = 30 * time.Second // of a case as a whole
	pollEvery = 2 * time.Millisecond

	// slack is how much of a TTL may have passed before we look, on a machine that is busy elsewhere.
	slack = 5 * time.Second
)

// caseT is what a case works with: a test, one server, and the means to dial it.
type caseT struct {
	TB
	h   *Harness
	srv *server
	ctx context.Context // ends with the case, or at its limit

	made    census
	leaves  bool         // the case leaves keys
	drivers atomic.Int32 // that are open

	patience time.Duration // for what happens sooner or later
	prompt   time.Duration // tells an answer from none
	poll     time.Duration // between two looks
}

func newCaseT(tb TB, h *Harness, srv *server) *caseT {
	ctx, cancel := context.WithTimeout(tb.Context(), caseLimit)
	tb.Cleanup(cancel)
	t := &caseT{TB: tb, h: h, srv: srv, ctx: ctx, patience: 10 * time.Second, prompt: 5 * time.Second, poll: pollEvery}
	if srv.nodes != nil {
		t.poll *= 10 // a look at five servers is dear
	}
	tb.Cleanup(func() {
		t.leavesNoKey()
		if srv.mini != nil {
			leavesNoConnection(tb, srv)
		}
	})
	return t
}

// key returns a key that no other case uses, with a form that clusters spread.
func (t *caseT) key() string {
	key := "conformance." + lease.NewToken()
	t.made.made(key)
	return key
}

// driver dials the server. The driver is closed at the end, before its client.
func (t *caseT) driver() driver.Driver {
	t.Helper()
	return t.dial(t.srv.target)
}

func (t *caseT) dial(target Target) driver.Driver {
	t.Helper()
	drv, err := t.h.Dial(t.TB, target)
	if err != nil {
		t.Fatalf("Harness.Dial(%s %v): %v", target.Kind, target.Addrs, err)
	}
	if t.h.client != nil {
		t.h.client.CompareAndSwap(nil, drv.Info().Client)
	}
	t.drivers.Add(1)
	t.Cleanup(func() {
		if err := drv.Close(); err != nil && !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Driver.Close: %v", err)
		}
		if t.drivers.Add(-1) == 0 {
			t.leavesNoSubscription()
		}
	})
	return drv
}

// proxied puts a proxy before the server and dials it.
func (t *caseT) proxied() (*faultproxy.Proxy, driver.Driver) {
	t.Helper()
	p := faultproxy.Start(t.TB, t.srv.target.Addrs[0])
	return p, t.dial(t.through(p))
}

// through is the server's target with p in place of its address.
func (t *caseT) through(p *faultproxy.Proxy) Target {
	target := t.srv.target
	target.Addrs = []string{p.Addr()}
	return target
}

// do sends a command to the node that has key, around the driver. An error fails the case.
func (t *caseT) do(key string, args ...any) any {
	t.Helper()
	if key != "" && writes[fmt.Sprint(args[0])] {
		t.made.wrote(key)
	}
	reply, err := t.srv.do(t.ctx, key, args...)
	if err != nil {
		t.Fatalf("%v: %v", args[0], err)
	}
	return reply
}

// stored returns the string at key; ok is false where there is none.
func (t *caseT) stored(key string) (value string, ok bool) {
	t.Helper()
	switch v := t.do(key, "GET", key).(type) {
	case nil:
		return "", false
	case string:
		return v, true
	default:
		t.Fatalf("GET replied %T", v)
		return "", false
	}
}

// exists reports whether there is a key of any type.
func (t *caseT) exists(key string) bool {
	t.Helper()
	return t.do(key, "EXISTS", key) == int64(1)
}

// Where pttl finds no key, or one that never expires.
const (
	noKey   = -2 * time.Millisecond
	forEver = -1 * time.Millisecond
)

// pttl returns the remaining life of a key, noKey or forEver.
func (t *caseT) pttl(key string) time.Duration {
	t.Helper()
	ms, _ := t.do(key, "PTTL", key).(int64)
	return time.Duration(ms) * time.Millisecond
}

// ok fails the case on an error.
func (t *caseT) ok(err error, what string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

// is demands that err matches target.
func (t *caseT) is(err, target error, what string, args ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: got error %v, want one that matches %q", fmt.Sprintf(what, args...), err, target)
	}
}

// eventually waits until f is true.
func (t *caseT) eventually(what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(t.patience)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("still not after %v: %s", t.patience, what)
		}
		t.pause(t.poll)
	}
}

// pause waits between two looks.
func (t *caseT) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
		t.Fatalf("the case took longer than %v", caseLimit)
	}
}

// event waits for a channel to be closed or to deliver.
func (t *caseT) event(ch <-chan struct{}, what string) {
	t.Helper()
	timer := time.NewTimer(t.patience)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
		t.Fatalf("still not after %v: %s", t.patience, what)
	}
}

// promptly runs f and fails the case if it does not return in good time.
func (t *caseT) promptly(what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(t.prompt)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s: no return after %v", what, t.prompt)
	}
}

// background runs f and returns where its error arrives.
func background(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	return result
}

// result waits for what background runs.
func (t *caseT) result(ch <-chan error, what string) error {
	t.Helper()
	timer := time.NewTimer(t.prompt)
	defer timer.Stop()
	select {
	case err := <-ch:
		return err
	case <-timer.C:
		t.Fatalf("%s: no return after %v", what, t.prompt)
		return nil
	}
}

package drivertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var outcomeCases = []testCase{
	{
		name: "an ended context sends nothing", on: suite.AllKinds,
		why: "ErrNotSent saves a caller the clean-up; it must be true, and be returned whenever it is",
		run: doneContextSendsNothing,
	},
	{
		name: "a refused connection sends nothing", on: suite.OneAddress, own: true,
		why: "with the server down no command was sent, so a strategy need not clean up after it",
		run: refusedConnectionSendsNothing,
	},
	{
		name: "a caller that leaves learns why there was no connection", on: suite.OnlyMemory,
		needs: []suite.Feature{suite.FeatureDialError},
		why:   "whoever gave it little time reads that there was no answer, and not that nobody listens at the address",
		run:   refusedConnectionIsReported,
	},
	{
		name: "a cancel returns soon", on: suite.OneAddress,
		why: "a client that waits for its read timeout blocks the caller far longer than it asked",
		run: func(t *caseT) {
			endedContextReturns(t, context.Canceled, 0, latency, endings[context.Canceled])
		},
	},
	{
		name: "a deadline returns soon", on: suite.OnlyMemory,
		why: "a command of unknown outcome can be resent within the lease only if the wait for it ends in time",
		run: func(t *caseT) {
			endedContextReturns(t, context.DeadlineExceeded, soon, soon+latency,
				func(t *caseT, _ <-chan struct{}) (context.Context, func()) { return context.WithTimeout(t.Ctx, soon) })
			endedContextReturns(t, context.DeadlineExceeded, 0, soon+lateBy+latency,
				func(t *caseT, _ <-chan struct{}) (context.Context, func()) { return late(t.Ctx) })
		},
	},
	{
		name: "a bounded context returns soon", on: suite.OnlyMemory,
		why: "strategies bound each send by bounded.New, over parents that can end and over those that cannot",
		run: func(t *caseT) {
			for _, parent := range []context.Context{t.Ctx, context.Background()} {
				endedContextReturns(t, context.DeadlineExceeded, soon, soon+latency,
					func(*caseT, <-chan struct{}) (context.Context, func()) {
						bound := bounded.New(parent, soon)
						return bound, bound.Stop
					})
			}
		},
	},
	{
		name: "a call returns while its client connects", on: suite.OnlyMemory,
		why: "a client may dial, log in or write without a look at the context, and callers wait for its connection",
		run: callReturnsWhileConnecting,
	},
	{
		name: "a hopeless deadline slows nobody else", on: suite.OnlyMemory,
		why: "a deadline that is too short says nothing about the server; a client that discards connections for it slows everybody",
		run: hopelessDeadlineSlowsNobody,
	},
	{
		name: "a lost reply leaves the outcome unknown", on: suite.OnlyMemory,
		why: "a client that resends by itself reports \"held by another\" to the holder, or runs a script twice",
		run: lostReplyLeavesUnknown,
	},
	{
		name: "a cut connection leaves the outcome unknown", on: suite.OneAddress,
		why: "after EOF it is unknown whether the command ran; a resend may run it twice",
		run: func(t *caseT) { cutLeavesUnknown(t, faultproxy.Cut, 1) },
	},
	{
		name: "a connection cut within the reply leaves the outcome unknown", on: suite.OneAddress,
		why: "a client may give a part of the reply beside its error: an empty list or text is no answer",
		run: cutReplyLeavesUnknown,
	},
	{
		name: "a connection cut before the command ran leaves the outcome unknown", on: suite.OneAddress,
		why: "the client cannot know that the request never arrived, so it must not report that",
		run: func(t *caseT) { cutLeavesUnknown(t, faultproxy.CutBefore, 0) },
	},
	{
		name: "a late command runs once", on: suite.OneAddress,
		why: "a delayed command runs after its caller gave up; the driver must not have sent it again",
		run: lateCommandRunsOnce,
	},
	{
		name: "answers are not mixed up after a timeout", on: suite.OneAddress,
		why: "the late reply of an abandoned command must not become the answer to the next",
		run: answersAreNotMixedUp,
	},
	{
		name: "slices belong to the caller after a cancel", on: suite.OneAddress,
		why: "a command in flight must not read slices that the caller has overwritten",
		run: slicesAfterCancel,
	},
}

// soon is the time to the deadline of a held-back command's context, in fake time; latency is more
// than a command and its reply take there.
const soon, latency = 100 * time.Millisecond, time.Millisecond

// endings make contexts that end during a held-back command, by their errors: one is cancelled when
// hit is closed, and the deadline of one passes.
var endings = map[error]func(t *caseT, hit <-chan struct{}) (context.Context, func()){
	context.Canceled: func(t *caseT, hit <-chan struct{}) (context.Context, func()) {
		ctx, cancel := context.WithCancel(t.Ctx)
		go func() {
			select {
			case <-hit:
				cancel()
			case <-ctx.Done():
			}
		}()
		return ctx, cancel
	},
	context.DeadlineExceeded: func(*caseT, <-chan struct{}) (context.Context, func()) {
		b := bounded.New(context.Background(), soon)
		return b, b.Stop
	},
}

// lateBy is longer than drivers wait for a reply after the deadline of a context.
const lateBy = 3 * time.Second

// late returns a context that ends after its deadline, as if the timer of a connection's deadline
// fired before the context's.
func late(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(parent, soon+lateBy)
	return lateContext{ctx, time.Now().Add(soon)}, cancel
}

type lateContext struct {
	context.Context
	deadline time.Time
}

func (l lateContext) Deadline() (time.Time, bool) { return l.deadline, true }

// endsHere reports whether a context that ends with err ends during the command of a case: on real
// servers a deadline may pass before.
func (t *caseT) endsHere(err error) bool {
	return err == context.Canceled || t.InFakeTime() //nolint:errorlint // a key of endings
}

// command is one of a driver's two ways to send.
type command struct {
	name string
	send func(ctx context.Context, drv driver.Driver, key string) error
}

var (
	setNX = command{"SetNX", func(ctx context.Context, drv driver.Driver, key string) error {
		_, err := drv.SetNX(ctx, key, "v", time.Minute)
		return err
	}}
	eval = command{"Eval", func(ctx context.Context, drv driver.Driver, key string) error {
		_, err := drv.Eval(ctx, countScript, []string{key}, nil)
		return err
	}}
	commands = []command{setNX, eval}
)

// ran returns how often the command was executed, by the value of its key.
func (c command) ran(t *caseT, key string) int {
	t.Helper()
	v, ok := t.Stored(key)
	switch {
	case !ok:
		return 0
	case c.name == "SetNX":
		return 1
	}
	n := 0
	_, err := fmt.Sscan(v, &n)
	t.OK(err, "the counter at %s", key)
	return n
}

// mustRun demands how often the command was executed.
func (c command) mustRun(t *caseT, key string, want int) {
	t.Helper()
	if n := c.ran(t, key); n != want {
		t.Errorf("%s ran %d times, want %d", c.name, n, want)
	}
}

// unknown demands that err leaves the outcome of the command unknown.
func (t *caseT) unknown(err error, what string) {
	t.Helper()
	var se *driver.ServerError
	switch {
	case err == nil:
		t.Errorf("%s: no error, although no answer came", what)
	case errors.As(err, &se):
		t.Errorf("%s: got a ServerError %q, although the server's answer never came", what, se.Text)
	case errors.Is(err, driver.ErrNotSent):
		t.Errorf("%s: %v reports that it was not sent, which cannot be known", what, err)
	}
}

func doneContextSendsNothing(t *caseT) {
	drv := t.Driver()
	t.warm(drv, countScript)
	cancelled, cancel := context.WithCancel(t.Ctx)
	cancel()
	past, cancelPast := context.WithDeadline(t.Ctx, time.Now().Add(-time.Hour))
	defer cancelPast()
	bound := bounded.New(context.Background(), -time.Second)
	defer bound.Stop()
	for what, ctx := range map[string]context.Context{"cancelled": cancelled, "past": past, "bounded": bound} {
		for _, c := range commands {
			key := t.Key()
			err := c.send(ctx, drv, key)
			t.Is(err, driver.ErrNotSent, "%s with a %s context", c.name, what)
			t.Is(err, ctx.Err(), "%s with a %s context", c.name, what)
			if t.Exists(key) {
				t.Errorf("%s with a %s context was executed", c.name, what)
			}
		}
		if t.Lacks(FeatureSubscribe) {
			continue
		}
		sub, err := drv.Subscribe(ctx, t.Key())
		t.Is(err, driver.ErrNotSent, "Subscribe with a %s context", what)
		if sub != nil {
			t.Errorf("Subscribe with a %s context returned a subscription", what)
		}
	}
}

// refusedConnectionIsReported leaves while the client may still be dialing again.
func refusedConnectionIsReported(t *caseT) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	p.Refuse()
	p.CutAll()
	for _, c := range commands {
		t.Eventually(c.name+" reports that nobody listens", func() bool {
			for what, ctx := range map[string]func() (context.Context, func()){
				"a deadline": func() (context.Context, func()) {
					b := bounded.New(context.WithoutCancel(t.Ctx), 300*time.Millisecond)
					return b, b.Stop
				},
				"a cancel": func() (context.Context, func()) {
					ctx, cancel := context.WithCancel(t.Ctx)
					stop := time.AfterFunc(300*time.Millisecond, cancel).Stop
					return ctx, func() { stop(); cancel() }
				},
			} {
				ctx, stop := ctx()
				err := c.send(ctx, drv, t.Key())
				stop()
				if !errors.Is(err, driver.ErrNotSent) {
					return false // on a dead connection
				}
				if !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%s with the server down, until %s: %v, want connection refused", c.name, what, err)
				}
			}
			return true
		})
	}
}

func refusedConnectionSendsNothing(t *caseT) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	p.Refuse()
	p.CutAll()
	for _, c := range commands {
		// The first calls may use dead pooled connections: their outcome is then unknown.
		t.Eventually(c.name+" reports that nothing was sent", func() bool {
			key := t.Key()
			ctx, cancel := context.WithTimeout(t.Ctx, t.Limit)
			defer cancel()
			err := c.send(ctx, drv, key)
			var se *driver.ServerError
			if err == nil || errors.As(err, &se) {
				t.Fatalf("%s with the server down: %v", c.name, err)
			}
			return errors.Is(err, driver.ErrNotSent)
		})
	}
	t.OK(p.Accept(), "take connections again")
	for _, c := range commands {
		t.Eventually(c.name+" works again", func() bool { return c.send(t.Ctx, drv, t.Key()) == nil })
	}
}

// endedContextReturns withholds replies and requests and demands that each command returns between
// two times in fake time, as its context ends.
func endedContextReturns(t *caseT, want error, earliest, latest time.Duration,
	newContext func(t *caseT, hit <-chan struct{}) (context.Context, func())) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	for _, c := range commands {
		for what, fault := range map[string]faultproxy.Fault{"reply": faultproxy.Stall, "request": faultproxy.StallRequest} {
			what := c.name + " with its " + what + " held back"
			key := t.Key()
			trap := p.Fail(key, fault)
			ctx, stop := newContext(t, trap.Hit())
			began := time.Now()
			err := t.Call(what, func() error { return c.send(ctx, drv, key) })
			stop()
			if took := time.Since(began); t.InFakeTime() && (took < earliest || took > latest) {
				t.Errorf("%s: it returned after %v, want between %v and %v", what, took, earliest, latest)
			}
			t.Is(err, want, "%s", what)
			t.Event(trap.Hit(), what)
			t.unknown(err, what)
			var answered atomic.Pointer[error]
			pending, isPending := errors.AsType[*driver.PendingError](err)
			if isPending {
				pending.OnAnswer(func(_ any, err error) { answered.Store(&err) })
			}
			trap.Release()
			t.Eventually("the command has run after all", func() bool { return c.ran(t, key) == 1 })
			t.SentOnce(p, key, what)
			if isPending {
				t.Eventually("the late answer is reported", func() bool { return answered.Load() != nil })
				t.OK(*answered.Load(), "%s: the late answer", what)
			}
		}
	}
}

// callReturnsWhileConnecting cuts the connections of a client whose next ones get stuck, makes
// calls in each way to send, and demands that they return as their context ends.
func callReturnsWhileConnecting(t *caseT) {
	ways := t.waysToSend()
	if !t.Lacks(FeatureSubscribe) {
		ways["Subscribe"] = func(ctx context.Context, drv driver.Driver, key string) error {
			_, err := drv.Subscribe(ctx, key)
			return err
		}
	}
	for _, place := range []string{"dial", "silent server", "write"} {
		for want, newContext := range map[error]func() (context.Context, func()){
			context.Canceled: func() (context.Context, func()) {
				ctx, cancel := context.WithCancel(t.Ctx)
				time.AfterFunc(soon, cancel)
				return ctx, cancel
			},
			context.DeadlineExceeded: func() (context.Context, func()) { return endings[context.DeadlineExceeded](t, nil) },
		} {
			drv, free := t.stuckWhileConnecting(place)
			var calls sync.WaitGroup
			for name, send := range ways {
				what := fmt.Sprintf("%s, %s, %v", name, place, want)
				for range 4 {
					key := t.Key()
					calls.Go(func() {
						var err error
						for range 50 { // some find cut connections
							ctx, stop := newContext()
							began := time.Now()
							err = send(ctx, drv, key)
							stop()
							if took := time.Since(began); took > soon+latency {
								t.Errorf("%s: it returned after %v, want %v", what, took, soon)
							}
							if errors.Is(err, want) {
								break
							}
						}
						t.Is(err, want, "%s", what)
						if place == "dial" && (name == setNX.name || name == eval.name) {
							t.Is(err, driver.ErrNotSent, "%s", what)
						}
					})
				}
			}
			ended := suite.Background(func() error { calls.Wait(); return nil })
			t.Pause(t.Limit)
			t.Promptly("Close", func() { _ = drv.Close() }) // any error is right
			free()
			t.OK(t.Result(ended, "the calls"), "the calls")
		}
	}
}

// stuckWhileConnecting makes a driver that has lost its connections. They were pipelined, and trusted.
// The next ones are stuck in a place until free is called.
func (t *caseT) stuckWhileConnecting(place string) (drv driver.Driver, free func()) {
	p := t.Server.Proxy(t.TB)
	t.Server.Mini.RequireAuth("secret") // for clients to wait for an answer when they connect
	defer t.Server.Mini.RequireAuth("")
	target, freed := t.Through(p), make(chan struct{})
	target.Password = "secret"
	free = sync.OnceFunc(func() { p.Thaw(); close(freed) })
	t.Cleanup(free)
	var stuck atomic.Bool
	dial := target.Dial
	target.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		switch {
		case !stuck.Load() || place == "silent server":
			return dial(ctx, network, addr)
		case place == "dial": // as over TLS, it does not look at ctx
			<-freed
			return dial(context.WithoutCancel(ctx), network, t.Server.Target.Addrs[0])
		default: // a pipe takes no unread byte
			near, far := net.Pipe()
			go func() { <-freed; _ = far.Close() }()
			return near, nil
		}
	}
	drv = t.Dial(target)
	t.warm(drv, countScript)
	t.Promptly("calls at once", t.begin(20, func(int) { t.OK(setNX.send(t.Ctx, drv, t.Key()), "a call") }).Wait)
	t.trusted(drv)
	stuck.Store(true)
	p.Freeze()
	p.CutAll()
	t.Pause(latency) // the client reads the end of pipelined connections, before a command does
	return drv, free
}

// hopelessDeadlineSlowsNobody makes many concurrent calls over a slow link, before and after a few
// with hopeless deadlines.
func hopelessDeadlineSlowsNobody(t *caseT) {
	const workers, calls, link = 40, 3, 50 * time.Millisecond
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	p.Latency(link)
	many := func() time.Duration {
		start := time.Now()
		var all sync.WaitGroup
		for range workers {
			key := t.Key()
			all.Go(func() {
				for range calls {
					if _, err := drv.Eval(t.Ctx, countScript, []string{key}, nil); err != nil {
						t.Errorf("Eval: %v", err)
					}
				}
			})
		}
		all.Wait()
		return time.Since(start)
	}
	many() // connects
	before := many()
	for _, parent := range []context.Context{t.Ctx, context.Background()} {
		bound := bounded.New(parent, link/20)
		_, err := drv.Eval(bound, countScript, []string{t.Key()}, nil)
		bound.Stop()
		if err == nil {
			t.Errorf("Eval was answered within %v, over a link of %v", link/20, link)
		}
	}
	if after := many(); after > 5*before { // before each call a connection may be new: three more round trips
		t.Errorf("many calls took %v, and %v after a hopeless deadline", before, after)
	}
}

// silence is time for a forbidden resend, in fake time: longer than the timeouts of clients,
// shorter than the life of the keys.
const silence = 30 * time.Second

func lostReplyLeavesUnknown(t *caseT) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	for _, c := range commands {
		key := t.Key()
		trap := p.Fail(key, faultproxy.DropReply)
		ctx, cancel := context.WithCancel(t.Ctx)
		result := suite.Background(func() error { return c.send(ctx, drv, key) })
		t.Event(trap.Hit(), "the reply is lost")
		t.Pause(silence)
		cancel()
		err := t.Result(result, c.name)
		t.unknown(err, c.name)
		t.SentOnce(p, key, c.name)
		c.mustRun(t, key, 1)
	}
}

func cutLeavesUnknown(t *caseT, fault faultproxy.Fault, runs int) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	for _, c := range commands {
		key := t.Key()
		trap := p.Fail(key, fault)
		err := t.Call(c.name, func() error { return c.send(t.Ctx, drv, key) })
		t.Event(trap.Hit(), "the connection is cut")
		t.unknown(err, c.name)
		t.SentOnce(p, key, c.name)
		c.mustRun(t, key, runs)
		t.Eventually(c.name+" works again", func() bool { return c.send(t.Ctx, drv, t.Key()) == nil })
	}
}

// cutReplyLeavesUnknown cuts replies of each kind in the middle.
func cutReplyLeavesUnknown(t *caseT) {
	p, drv := t.Proxied()
	for what, source := range map[string]string{
		"a text": `return string.rep('x', 100)`, "a number": `return 1234567890`, "a status": `return redis.status_reply('WELL DONE')`,
		"a list": `return {1, 'a', string.rep('x', 100)}`, "a list of one": `return {string.rep('x', 100)}`,
	} {
		s, key := script(source), t.Key()
		send := func() error {
			_, err := drv.Eval(t.Ctx, s, []string{key}, nil)
			return err
		}
		t.OK(send(), "%s", what) // the server knows the script now
		trap := p.Fail(key, faultproxy.CutWithin)
		err := t.Call(what, send)
		t.Event(trap.Hit(), "the connection is cut")
		t.unknown(err, what)
		t.Eventually("it works again", func() bool { return send() == nil })
	}
}

func lateCommandRunsOnce(t *caseT) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	for _, c := range commands {
		key := t.Key()
		trap := p.Fail(key, faultproxy.StallRequest)
		ctx, cancel := context.WithCancel(t.Ctx)
		result := suite.Background(func() error { return c.send(ctx, drv, key) })
		t.Event(trap.Hit(), "the request is held back")
		cancel()
		t.unknown(t.Result(result, c.name), c.name)
		if n := c.ran(t, key); n != 0 {
			t.Fatalf("%s ran %d times while it was held back", c.name, n)
		}
		trap.Release()
		t.Event(trap.Executed(), "the late command runs")
		for range 5 { // and the driver goes on as if nothing had happened
			t.OK(c.send(t.Ctx, drv, t.Key()), "%s after a late one", c.name)
		}
		t.SentOnce(p, key, c.name)
		c.mustRun(t, key, 1)
	}
}

func answersAreNotMixedUp(t *caseT) {
	p, drv := t.Proxied()
	echo := script(`return {KEYS[1], ARGV[1]}`)
	t.OK(wantEcho(t, drv, echo, t.Key(), "first"), "Eval")
	for i := range 5 {
		key := t.Key()
		trap := p.Fail(key, faultproxy.Stall)
		ctx, cancel := context.WithCancel(t.Ctx)
		result := suite.Background(func() error {
			_, err := drv.Eval(ctx, echo, []string{key}, []string{"abandoned"})
			return err
		})
		t.Event(trap.Hit(), "the reply is held back")
		cancel()
		t.unknown(t.Result(result, "cancelled Eval"), "cancelled Eval")
		trap.Release()
		for range 5 {
			t.OK(wantEcho(t, drv, echo, t.Key(), fmt.Sprint("after ", i)), "Eval after an abandoned one")
		}
	}
}

func slicesAfterCancel(t *caseT) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	for range 10 {
		key := t.Key()
		trap := p.Fail(key, faultproxy.StallRequest)
		ctx, cancel := context.WithCancel(t.Ctx)
		keys, args := []string{key}, []string{"argument"}
		result := suite.Background(func() error {
			_, err := drv.Eval(ctx, countScript, keys, args)
			keys[0], args[0] = "overwritten", "overwritten" // the race detector reports late reads
			return err
		})
		t.Event(trap.Hit(), "the request is held back")
		cancel()
		t.unknown(t.Result(result, "cancelled Eval"), "cancelled Eval")
		trap.Release()
		t.Event(trap.Executed(), "the late command runs")
	}
	// Cancel at many instants, some during the write.
	for i := range 100 {
		ctx, cancel := context.WithTimeout(t.Ctx, time.Duration(i)*10*time.Microsecond)
		keys, args := []string{t.Key()}, []string{"argument"}
		_, _ = drv.Eval(ctx, countScript, keys, args) // any outcome is right
		keys[0], args[0] = "overwritten", "overwritten"
		cancel()
	}
}

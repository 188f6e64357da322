package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// kind is a strategy and its capabilities.
type kind struct {
	hash      bool // its key is not a string
	shared    bool // it has a shared mode, and converts
	reentrant bool
	watched   bool // its locks are renewed until they are released
	permits   int  // the limit of a semaphore; 0: it is none
	make      func(driver.Driver) (locker.Locker, error)
}

// walker is common to the walks over a lock and over a quorum.
type walker struct {
	*rapid.T
	l      locker.Locker
	script []string
	named  int
}

// walk repeats actions, and then ends. It logs the script of a failed walk.
func (w *walker) walk(actions map[string]func(*rapid.T), end func()) {
	done := false
	defer func() {
		if !done {
			w.Logf("the script:\n%s", strings.Join(w.script, "\n"))
		}
	}()
	w.Repeat(actions)
	end()
	done = true
}

// notef adds a line to the script.
func (w *walker) notef(format string, args ...any) {
	w.script = append(w.script, fmt.Sprintf("%2d. ", len(w.script))+fmt.Sprintf(format, args...))
}

// nextID returns the name of the next lock in scripts: a to z, then a1 and so on.
func (w *walker) nextID() string {
	id := string(rune('a' + w.named%26))
	if n := w.named / 26; n > 0 {
		id += fmt.Sprint(n)
	}
	return id
}

// pass advances time, and waits for everything due then. Events at the same instant have no order.
func (w *walker) pass(d time.Duration) {
	pass(d)
	synctest.Wait()
}

// over checks the error of an operation on a hold ended before.
func (w *walker) over(err, want error, what string) {
	if !is(err, want) {
		w.Fatalf("%s, which is over: %v, want %v", what, err, want)
	}
}

// checkDeadline checks a Deadline after a step with ttl.
func (w *walker) checkDeadline(s step, h held, first, last time.Time, ttl time.Duration) {
	if got := h.lock.Deadline(); !within(got, first, last) {
		w.Fatalf("the Deadline of %s is in %v, after a step of %v; want %v", h.id, got.Sub(s.start), s.end.Sub(s.start), left(ttl))
	}
}

// one chooses a hold.
func one[H any](t *rapid.T, holds []H) H {
	if len(holds) == 0 {
		t.Skip("nothing is held")
	}
	return holds[rapid.IntRange(0, len(holds)-1).Draw(t, "hold")]
}

// machine is one walk: a server, its history, and the model of its expected state.
type machine struct {
	*kind
	walker
	srv *server

	holds   []*hold
	foreign time.Time // until when a foreign value is at the key
	haunted time.Time // until then a failed operation may arrive, or be cleaned up
	intents time.Time // until then refused waiters may matter
	fence   int64     // the highest fencing token so far
	tenure  int64     // the last one
	longest time.Duration

	outlasted time.Duration // length of the outage just over
}

// walk checks random walks over a strategy.
func walk(t *testing.T, k kind) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			client := clients.All[rapid.IntRange(0, len(clients.All)-1).Draw(t, "client")]
			m := &machine{kind: &k, walker: walker{T: t, script: []string{"client " + client.Name}}}
			m.srv = newServer(t, client)
			m.l = locker.Must(k.make(m.srv.drv))
			m.walk(map[string]func(*rapid.T){
				"":            func(*rapid.T) { m.check() },
				"acquire":     m.acquire,
				"acquire too": m.acquire, // twice as often
				"renew":       m.renew,
				"release":     m.release,
				"convert":     m.convert,
				"resume":      m.resume,
				"mark lost":   m.markLost,
				"wait":        m.wait,
				"wait too":    m.wait,
				"restart":     m.restart,
				"foreign":     m.foreigner,
				"outage":      m.outage,
			}, m.end)
		})
	})
}

// step is one executed operation.
type step struct {
	plan
	start, end time.Time
	sent       int
	err        error
}

// faulted reports whether there was a fault of its commands.
func (s step) faulted() bool { return s.bad() && s.sent > 0 }

// String is for scripts.
func (s step) String() string {
	if d := s.end.Sub(s.start); d > 0 {
		return fmt.Sprintf("%s, after %v", say(s.err), d)
	}
	return say(s.err)
}

// perform executes op with faults of its commands, and records it.
func (m *machine) perform(t *rapid.T, what string, op func(ctx context.Context) error) step {
	p := rapid.SampledFrom(plans).Draw(t, "faults")
	s := step{plan: p, start: time.Now()}
	m.srv.drv.then(p)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	s.err = op(inStep(ctx))
	cancel()
	s.end, s.sent = time.Now(), m.srv.drv.commands()
	synctest.Wait() // for its background work
	m.srv.drv.then(plan{})
	if s.sent == 0 {
		p = plan{}
	}
	m.notef("%s%v: %s", what, p, s)
	if s.faulted() {
		m.haunt(latest(s.end, m.srv.drv.lastLate()))
	}
	return s
}

// haunt records the end of the clean-up of failed operations: it is tried each second.
func (m *machine) haunt(now time.Time) {
	m.haunted = latest(m.haunted, now.Add(1100*time.Millisecond))
}

// say formats an error without the details of one run.
func say(err error) string {
	var words []string
	for _, known := range []struct {
		err  error
		text string
	}{
		{locker.ErrNotAcquired, "held by another"}, {locker.ErrReleased, "released"}, {locker.ErrLost, "lost"},
		{locker.ErrUnknownOutcome, "unknown"}, {errors.ErrUnsupported, "unsupported"},
	} {
		if errors.Is(err, known.err) {
			words = append(words, known.text)
		}
	}
	switch {
	case err == nil:
		return "ok"
	case len(words) == 0 && errors.Is(err, locker.ErrNotHeld):
		return "not held"
	case len(words) == 0:
		return err.Error()
	}
	return strings.Join(words, ", ")
}

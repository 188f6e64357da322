package interop

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/interop/gopeer"
	"github.com/holdfast-go/holdfast/interop/peer"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// pair is a peer and a Locker of ours at a server of their own.
type pair struct {
	kind
	client clients.Client
	server *redistest.Server
	theirs *peer.Process
	bare   locker.Locker // our strategy
	ours   locker.Locker // the usual chain around it
}

func newPair(t *testing.T, k kind, c clients.Client) *pair {
	t.Helper()
	server := redistest.Start(t, redistest.Options{})
	if k.strategy == k.hearing() {
		server.MustCommand(t, "CONFIG", "SET", "notify-keyspace-events", "Kgxe")
	}
	bare := newStrategy(c.Open(t, server.Addr()), k)
	ours := locker.Must(holdfast.Wrap(bare, holdfast.Config{}))
	return &pair{kind: k, client: c, server: server, theirs: k.start(t, server.Addr()), bare: bare, ours: ours}
}

// newStrategy is our side of a kind, without waiting and renewals.
func newStrategy(drv driver.Driver, k kind) locker.Locker {
	return locker.Must(gopeer.NewStrategy(drv, cmp.Or(k.strategy, "single"), k.prefix))
}

// try makes one attempt of ours. It returns nil if another library holds the lock.
func (p *pair) try(t *testing.T, name string) *locker.Lock {
	t.Helper()
	lock, err := p.ours.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, NoWait: true})
	if err == nil {
		return lock
	}
	refused, ok := errors.AsType[*locker.ContentionError](err)
	if !ok || !errors.Is(err, locker.ErrNotAcquired) {
		t.Fatalf("acquire of a lock of another library: %v", err)
	}
	check.Equal(t, "the refusal is Foreign", refused.Foreign, true)
	return nil
}

// hold acquires a free lock of ours.
func (p *pair) hold(t *testing.T, name string) *locker.Lock {
	t.Helper()
	lock := p.try(t, name)
	if lock == nil {
		t.Fatalf("%q is not free", name)
	}
	return lock
}

// await waits for a lock in the background. It returns when that waits.
func (p *pair) await(t *testing.T, name string) <-chan result {
	t.Helper()
	return awaitBy(t, p.ours, name)
}

// awaitBy is await of a Locker.
func awaitBy(t *testing.T, l locker.Locker, name string) <-chan result {
	t.Helper()
	waits, got := make(chan struct{}, 1), make(chan result, 1)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
	ctx = locktrace.With(ctx, &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) {
		select {
		case waits <- struct{}{}:
		default:
		}
	}})
	go func() {
		defer cancel()
		lock, err := l.Acquire(ctx, locker.Request{Name: name, TTL: ttl})
		got <- result{lock, err, time.Now()}
	}()
	select {
	case <-waits:
	case r := <-got:
		t.Fatalf("an acquire of a held lock did not wait: %v", r.err)
	}
	return got
}

// result is what an acquire returned, and when.
type result struct {
	lock *locker.Lock
	err  error
	at   time.Time
}

// tell sends the peer a command, and checks the outcome.
func tell(t *testing.T, p *peer.Process, want peer.Outcome, words ...any) {
	t.Helper()
	if a := p.Do(words...); a.Outcome != want {
		t.Fatalf("%v: %s %s, want %s", words, a.Outcome, a.Text, want)
	}
}

// acquire has a peer acquire a lock, without waiting.
func acquire(t *testing.T, p *peer.Process, want peer.Outcome, name string) {
	t.Helper()
	tell(t, p, want, "acquire", name, ttl.Milliseconds(), 0)
}

// sendAcquire has the peer wait for a held lock. It returns when the peer has been refused.
func (p *pair) sendAcquire(t *testing.T, name string) {
	t.Helper()
	received := p.receive(t, "MONITOR")
	refused := func() { // the server has executed an attempt: any command with the key but GET, which none of a script is
		t.Helper()
		for {
			line, _ := received().(string)
			attempt := !strings.Contains(line, `"GET"`) && !strings.Contains(line, " lua] ")
			if attempt && strings.Contains(line, `"`+p.prefix+name+`"`) {
				return
			}
		}
	}
	p.theirs.Send("acquire", name, ttl.Milliseconds(), p.wait().Milliseconds())
	for range max(p.attempts, 1) {
		refused()
	}
}

// receive sends a command on a connection of its own, and returns a function that receives the next
// value behind the answer.
func (p *pair) receive(t *testing.T, command ...any) (next func() any) {
	t.Helper()
	conn, err := p.server.Dial(t.Context())
	check.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	check.Must(t, conn.SetDeadline(time.Now().Add(peer.Patience)))
	_, err = conn.Do(command...)
	check.Must(t, err)
	return func() any {
		t.Helper()
		v, err := conn.Receive()
		check.Must(t, err)
		return v.Any()
	}
}

// command sends a command about the lock's key to the server.
func (p *pair) command(t *testing.T, verb, name string, more ...any) any {
	t.Helper()
	return p.server.MustCommand(t, append([]any{verb, p.prefix + name}, more...)...)
}

package tracing_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// process is one process with a client, an SDK and a chain of its own.
type process struct {
	*recorded
	driver driver.Driver
	locker locker.Locker
}

// overRedis runs f in fake time on one server. start starts a process on one of the clients.
func overRedis(t *testing.T, f func(t *testing.T, m *miniredis.Miniredis, start func(client int, cfg tracing.Config) *process)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		f(t, m, func(client int, cfg tracing.Config) *process {
			drv, closeClient, err := clients.All[client].InMemory(m)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = errors.Join(drv.Close(), closeClient()) })
			p := &process{recorded: record(), driver: drv}
			p.locker = locker.Chain(locker.Must(single.New(p.driver, single.Config{})), p.middleware(cfg), locker.Must(retry.New(retry.Config{})))
			return p
		})
		synctest.Wait()
	})
}

// A refused acquisition links to the span of the holder, also if that is another process on another
// client.
func TestLinkAcrossClients(t *testing.T) {
	t.Parallel()
	for h, holderClient := range clients.All {
		for w, waiterClient := range clients.All {
			t.Run(holderClient.Name+" holds, "+waiterClient.Name+" waits", func(t *testing.T) {
				overRedis(t, func(t *testing.T, _ *miniredis.Miniredis, start func(int, tracing.Config) *process) {
					holder, waiter := start(h, tracing.Config{}), start(w, tracing.Config{})
					lock, err := holder.locker.Acquire(t.Context(), locker.Request{Name: "job", Note: "nightly", Fenced: h == w})
					if err != nil {
						t.Fatalf("Acquire: %v", err)
					}
					to := toward(holder.only(t, "acquire lock").SpanContext())

					_, err = waiter.locker.Acquire(t.Context(), locker.Request{Name: "job", NoWait: true})
					if held, ok := errors.AsType[*locker.ContentionError](err); !ok || held.Note != "nightly" {
						t.Errorf("refused with %v", err)
					}
					refused := waiter.only(t, "acquire lock")
					equal(t, "links of one that was refused", linked(refused), []string{to})
					if attrs := text(refused.Attributes()); !strings.Contains(attrs, "db.system.name=redis") || !strings.Contains(attrs, "provider="+waiter.driver.Info().Client) {
						t.Errorf("attributes %s", attrs)
					}

					waiter.Reset()
					time.AfterFunc(20*time.Second, func() { _ = lock.Release(context.Background()) })
					err = locker.Do(t.Context(), waiter.locker, locker.Request{Name: "job"}, func(context.Context, *locker.Lock) error { return nil })
					if err != nil {
						t.Errorf("Do: %v", err)
					}
					waited := waiter.only(t, "acquire lock")
					equal(t, "links of one that waited", linked(waited), []string{to})
					if took := waited.EndTime().Sub(waited.StartTime()); took < 20*time.Second || took > 21*time.Second {
						t.Errorf("waited %v", took)
					}
				})
			})
		}
	}
}

// A process with NoLink still links to those that send their trace context. They do not link to it.
func TestNoLink(t *testing.T) {
	overRedis(t, func(t *testing.T, _ *miniredis.Miniredis, start func(int, tracing.Config) *process) {
		silent, open := start(0, tracing.Config{NoLink: true}), start(1, tracing.Config{})
		refused := func(holder, waiter *process) []string {
			t.Helper()
			lock, err := holder.locker.Acquire(t.Context(), locker.Request{Name: "job"})
			if err != nil {
				t.Fatalf("Acquire: %v", err)
			}
			waiter.Reset()
			_, _ = waiter.locker.Acquire(t.Context(), locker.Request{Name: "job", NoWait: true})
			_ = lock.Release(t.Context())
			return linked(waiter.only(t, "acquire lock"))
		}
		equal(t, "links to one that is silent", refused(silent, open), []string{})
		open.Reset()
		if links := refused(open, silent); len(links) != 1 {
			t.Errorf("a silent waiter's links are %v", links)
		}
	})
}

// Only the stored value grows: the commands are as many as before, and other libraries can contend
// for the name.
func TestOtherLibraries(t *testing.T) {
	overRedis(t, func(t *testing.T, m *miniredis.Miniredis, start func(int, tracing.Config) *process) {
		other := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() }})
		defer other.Close()
		other.Ping(t.Context())
		p := start(0, tracing.Config{})
		plain := locker.Must(single.New(p.driver, single.Config{}))
		cycle := func(l locker.Locker) int {
			t.Helper()
			before := m.CommandCount()
			lock, err := l.Acquire(t.Context(), locker.Request{Name: "job"})
			if err != nil {
				t.Fatalf("Acquire: %v", err)
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
			return m.CommandCount() - before
		}
		cycle(plain) // the connection, the script
		if with, without := cycle(p.locker), cycle(plain); with != without {
			t.Errorf("a traced cycle takes %d commands, another %d", with, without)
		}

		lock, err := p.locker.Acquire(t.Context(), locker.Request{Name: "job"})
		if err != nil {
			t.Fatalf("Acquire: %v", err)
		}
		setNX := func() bool {
			return other.SetArgs(t.Context(), "job", "a-foreign-token", redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err() == nil
		}
		compareAndDelete := func() int64 {
			n, _ := other.Eval(t.Context(), `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`,
				[]string{"job"}, "a-foreign-token").Int64()
			return n
		}
		if setNX() || compareAndDelete() != 0 {
			t.Error("another library took or released what is held")
		}
		if err := lock.Release(t.Context()); err != nil || !setNX() {
			t.Errorf("another library cannot lock after the release (%v)", err)
		}
		p.Reset()
		_, err = p.locker.Acquire(t.Context(), locker.Request{Name: "job", MaxWait: time.Second})
		s := p.only(t, "acquire lock")
		if !errors.Is(err, locker.ErrNotAcquired) || len(s.Links()) != 0 {
			t.Errorf("%v, links %v; want none to another library", err, linked(s))
		}
		if compareAndDelete() != 1 {
			t.Error("another library could not release")
		}
	})
}

// A reentrant lock keeps the note too.
func TestLinkToReentrant(t *testing.T) {
	overRedis(t, func(t *testing.T, _ *miniredis.Miniredis, start func(int, tracing.Config) *process) {
		holder, waiter := start(1, tracing.Config{}), start(2, tracing.Config{})
		chain := func(p *process) locker.Locker {
			return locker.Chain(locker.Must(reentrant.New(p.driver, reentrant.Config{})), p.middleware(tracing.Config{}))
		}
		if _, err := chain(holder).Acquire(t.Context(), locker.Request{Name: "job", Owner: "w7"}); err != nil {
			t.Fatalf("Acquire: %v", err)
		}
		_, _ = chain(waiter).Acquire(t.Context(), locker.Request{Name: "job"})
		equal(t, "links", linked(waiter.only(t, "acquire lock")), []string{toward(holder.only(t, "acquire lock").SpanContext())})
	})
}

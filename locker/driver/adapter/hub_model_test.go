package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// slowServer executes commands in order, each a while after it was sent. It delivers messages only
// to connections subscribed at that time.
type slowServer struct {
	*server

	slow     []*slowFeed // under the mutex of the server, as all below
	frozen   time.Time   // until then it executes nothing
	refusing time.Time   // until then it refuses commands
	refusal  error       // with this
	commands int
}

type slowFeed struct {
	*feed
	srv      *slowServer
	commands chan string

	on       map[string]bool // under the mutex of srv
	halfOpen bool
}

func (s *slowServer) open(ctx context.Context) (adapter.Feed, error) {
	if _, err := s.server.open(ctx); err != nil {
		return nil, err
	}
	f := &slowFeed{feed: s.newest(), srv: s, on: map[string]bool{}, commands: make(chan string, 1000)}
	s.set(func() { s.slow = append(s.slow, f) })
	go f.execute()
	return f, nil
}

func (f *slowFeed) execute() {
	for {
		select {
		case c := <-f.commands:
			<-time.After(time.Duration(rand.IntN(100)) * time.Millisecond)
			f.srv.mu.Lock()
			pause := time.Until(f.srv.frozen)
			f.srv.mu.Unlock()
			<-time.After(pause)
			f.srv.mu.Lock()
			f.answer(c[:1], c[1:])
			f.srv.mu.Unlock()
		case <-f.over:
			return
		}
	}
}

// answer executes a command. The mutex of the server is held.
func (f *slowFeed) answer(command, channel string) {
	f.srv.commands++
	ev := adapter.Event{Kind: "subscribe", Channel: channel}
	if command == "-" {
		ev.Kind = "unsubscribe"
	}
	switch {
	case f.halfOpen:
		return
	case time.Now().Before(f.srv.refusing):
		ev.Err = f.srv.refusal
	default:
		f.on[channel] = command == "+"
	}
	f.reply(f.srv.client, ev)
}

func (f *slowFeed) Subscribe(channel string) error   { f.commands <- "+" + channel; return nil }
func (f *slowFeed) Unsubscribe(channel string) error { f.commands <- "-" + channel; return nil }

func (f *slowFeed) Close() error {
	_ = f.feed.Close()
	f.srv.set(func() { clear(f.on) })
	return nil
}

func (s *slowServer) publish(channel string) {
	s.mu.Lock()
	pause := time.Until(s.frozen)
	s.mu.Unlock()
	<-time.After(pause)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.slow {
		if f.on[channel] && !f.halfOpen {
			f.publish(channel)
		}
	}
}

// disturb injects one fault of a server or a connection.
func (s *slowServer) disturb() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.slow) == 0 {
		return
	}
	f := s.slow[len(s.slow)-1]
	switch rand.IntN(4) {
	case 0:
		f.hangUp()
	case 1:
		f.halfOpen = true
	case 2:
		s.frozen = time.Now().Add(time.Duration(rand.IntN(8000)) * time.Millisecond)
	case 3:
		s.refusing = time.Now().Add(time.Duration(rand.IntN(8000)) * time.Millisecond)
		s.refusal = []error{errBusy, errNoPerm}[rand.IntN(2)]
	}
}

// Whatever happens to the connection, a listener is woken after a message on its channel: by the
// message, by another connection's subscription, or by the next SUBSCRIBE a minute after a refusal.
func TestHubLosesNoWakeUp(t *testing.T) {
	kinds := map[string]clientKind{"knows the order": knowsOrder, "knows the command": knowsCommand}
	t.Parallel()
	check.EachInFakeTime(t, kinds, func(t *testing.T, kind clientKind) {
		srv := &slowServer{server: newServer(t)}
		srv.client = kind
		hub := adapter.NewHub(srv.open, nil)
		var workers, faults sync.WaitGroup
		calm := make(chan struct{})
		faults.Go(func() {
			for {
				select {
				case <-time.After(time.Duration(rand.IntN(20000)) * time.Millisecond):
					srv.disturb()
				case <-calm:
					return
				}
			}
		})
		for range 8 {
			workers.Go(func() {
				for range 30 {
					srv.expectWakeUp(t, hub, fmt.Sprint(rand.IntN(4)))
				}
			})
		}
		workers.Wait()
		close(calm)
		faults.Wait()
		check.Advance(time.Minute)
		before := srv.count()
		check.Advance(time.Minute)
		check.Equal(t, "commands without a listener", srv.count()-before, 0)
		closeHub(t, hub)
	})
}

func (s *slowServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands
}

// expectWakeUp subscribes, publishes some time later, and demands a wake-up.
func (s *slowServer) expectWakeUp(t *testing.T, hub *adapter.Hub, channel string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(10000))*time.Millisecond)
	defer cancel()
	sub, err := hub.Subscribe(ctx, channel)
	if err != nil {
		<-time.After(time.Duration(rand.IntN(15000)) * time.Millisecond) // a refusal lasts for a minute
		return
	}
	<-time.After(time.Duration(rand.IntN(15000)) * time.Millisecond)
	wakeUps(sub)
	s.publish(channel)
	select {
	case <-sub.Wake():
	case <-time.After(90 * time.Second):
		t.Errorf("a message on %s woke nobody for 90 s", channel)
	}
	closeSub(t, sub)
}

// Everything at once, on the real clock, for the race detector: subscriptions come and go, contexts
// end, messages arrive, connections break, the hub closes. Nothing hangs, panics, or leaks.
func TestHubAllAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		srv := newServer(t)
		hub := adapter.NewHub(srv.open, nil)
		var workers, noise sync.WaitGroup
		quiet := make(chan struct{})
		noise.Go(func() {
			for {
				select {
				case <-quiet:
					return
				case <-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond):
					disturb(srv)
				}
			}
		})
		for w := range 6 {
			workers.Go(func() {
				for range 40 {
					comeAndGo(t, hub, string(rune('a'+rand.IntN(3))))
				}
				if w == 0 && round%2 == 0 { // the others are in the middle
					_ = hub.Close()
				}
			})
		}
		workers.Wait()
		close(quiet)
		noise.Wait()
		closeHub(t, hub)
		for _, f := range srv.feeds {
			if !f.isClosed() {
				t.Error("a connection is open after Close")
			}
		}
	}
}

// disturb sends a message, or hangs up.
func disturb(srv *server) {
	srv.mu.Lock()
	feeds := srv.feeds
	srv.mu.Unlock()
	if len(feeds) == 0 {
		return
	}
	f := feeds[len(feeds)-1]
	if rand.IntN(4) > 0 {
		f.publish("a")
	} else if !f.isClosed() {
		f.hangUp()
	}
}

func comeAndGo(t *testing.T, hub *adapter.Hub, channel string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(3000))*time.Microsecond)
	defer cancel()
	sub, err := hub.Subscribe(ctx, channel)
	if (sub == nil) != (err != nil) {
		t.Errorf("Subscribe: %v, %v", sub, err)
	}
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Subscribe: %v", err)
		}
		return
	}
	select {
	case <-sub.Wake():
	case <-ctx.Done():
	}
	_ = sub.Close()
}

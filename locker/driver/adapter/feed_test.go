package adapter_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// server is the server of a Hub in these tests. It confirms and refuses as a Redis server does,
// unless it is silent.
type server struct {
	t *testing.T

	mu       sync.Mutex
	feeds    []*feed
	dialed   []time.Time      // every attempt
	refuse   error            // of every open, until cleared
	forbid   map[string]error // replies to SUBSCRIBE, by channel
	forbidUn error            // reply to UNSUBSCRIBE
	client   clientKind
	silent   bool          // confirms nothing; the test does
	fragile  bool          // hangs up after the first command
	lasts    time.Duration // how much later
	stall    chan struct{} // commands cannot be written until it is closed
	writeErr error         // of every command
	hasty    bool          // the client closes the connection before it returns writeErr
	closeErr error         // of Close
}

// clientKind is how a client reports error replies.
type clientKind uint8

const (
	endsAtErrors clientKind = iota // the connection ends; it reports no "unsubscribe" either
	knowsOrder                     // the client reports an error reply, not its command
	knowsCommand                   // the client reports the command too; it reports no other "unsubscribe"
)

func newServer(t *testing.T) *server { return &server{t: t, forbid: map[string]error{}} }

// newHub returns a Hub on srv, and closes it when the test ends.
func newHub(t *testing.T, srv *server) *adapter.Hub {
	hub := adapter.NewHub(srv.open, nil)
	t.Cleanup(func() { closeHub(t, hub) })
	return hub
}

func (s *server) open(ctx context.Context) (adapter.Feed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialed = append(s.dialed, time.Now())
	if s.refuse != nil {
		return nil, s.refuse
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := &feed{srv: s, events: make(chan event, 4096), over: make(chan struct{})}
	s.feeds = append(s.feeds, f)
	return uncomparable{Feed: f}, nil
}

// set changes the server under its lock.
func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// dials returns the times of the dials, relative to the first.
func (s *server) dials() (after []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.dialed {
		after = append(after, at.Sub(s.dialed[0]))
	}
	return after
}

// newest returns the latest connection.
func (s *server) newest() *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.feeds) == 0 {
		s.t.Fatal("no connection was opened")
	}
	return s.feeds[len(s.feeds)-1]
}

// uncomparable is a Feed that is not comparable, as a Hub may get it.
type uncomparable struct {
	adapter.Feed
	_ []byte
}

type event struct {
	adapter.Event
	err error
}

// feed is one connection.
type feed struct {
	srv    *server
	events chan event
	over   chan struct{}
	once   sync.Once
	busy   atomic.Bool  // a command is being written
	tries  atomic.Int32 // commands, written or not

	mu       sync.Mutex
	commands []string
}

func (f *feed) Subscribe(channel string) error   { return f.write("+", channel) }
func (f *feed) Unsubscribe(channel string) error { return f.write("-", channel) }

func (f *feed) write(command, channel string) error {
	f.tries.Add(1)
	if !f.busy.CompareAndSwap(false, true) {
		f.srv.t.Error("two commands are written at once")
	}
	defer f.busy.Store(false)
	f.srv.mu.Lock()
	stall, err, silent, forbidden, fragile := f.srv.stall, f.srv.writeErr, f.srv.silent, f.srv.forbid[channel], f.srv.fragile
	hasty, client, forbiddenUn, lasts := f.srv.hasty, f.srv.client, f.srv.forbidUn, f.srv.lasts
	f.srv.mu.Unlock()
	if stall != nil {
		select {
		case <-stall:
		case <-f.over:
			return context.Canceled
		}
	}
	f.mu.Lock()
	f.commands = append(f.commands, command+channel)
	f.mu.Unlock()
	switch {
	case err != nil && hasty:
		_ = f.Close()
		time.Sleep(time.Millisecond) //nolint:forbidigo // fake time: Next comes first
		return err
	case err != nil:
		return err
	case fragile:
		time.AfterFunc(lasts, f.hangUp)
		if !silent {
			f.confirm(channel)
		}
	case silent:
	case command == "-":
		f.reply(client, adapter.Event{Kind: "unsubscribe", Channel: channel, Err: forbiddenUn})
	case forbidden != nil:
		f.reply(client, adapter.Event{Kind: "subscribe", Channel: channel, Err: forbidden})
	default:
		f.confirm(channel)
	}
	return nil
}

// reply delivers an answer as a client of that kind does.
func (f *feed) reply(client clientKind, ev adapter.Event) {
	switch {
	case ev.Err == nil && ev.Kind == "unsubscribe" && client != knowsOrder:
	case ev.Err == nil || client == knowsCommand:
		f.events <- event{Event: ev}
	case client == knowsOrder:
		f.events <- event{Event: adapter.Event{Err: ev.Err}}
	default:
		f.events <- event{err: ev.Err}
	}
}

func (f *feed) Next() (adapter.Event, error) {
	select {
	case ev := <-f.events:
		return ev.Event, ev.err
	case <-f.over:
		return adapter.Event{}, net.ErrClosed
	}
}

func (f *feed) Close() error {
	f.once.Do(func() { close(f.over) })
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	return f.srv.closeErr
}

func (f *feed) isClosed() bool { return check.Closed(f.over) }

func (f *feed) confirm(channel string) {
	f.events <- event{Event: adapter.Event{Kind: "subscribe", Channel: channel}}
}

func (f *feed) publish(channel string) {
	f.events <- event{Event: adapter.Event{Kind: "message", Channel: channel}}
}

// hangUp ends the connection as a dying server does.
func (f *feed) hangUp() { f.events <- event{err: net.ErrClosed} }

// sent returns the written commands, in order for each channel.
func (f *feed) sent() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.commands)
}

// subscribe subscribes, and receives the wake-up of the confirmation, if any.
func subscribe(t *testing.T, hub *adapter.Hub, channel string) driver.Subscription {
	t.Helper()
	sub, err := hub.Subscribe(t.Context(), channel)
	if err != nil {
		t.Fatalf("Subscribe(%q): %v", channel, err)
	}
	synctest.Wait()
	wakeUps(sub)
	return sub
}

// ask subscribes in the background.
func ask(ctx context.Context, hub *adapter.Hub, channel string) <-chan asked {
	answer := make(chan asked, 1)
	go func() {
		sub, err := hub.Subscribe(ctx, channel)
		answer <- asked{sub, err, time.Now()}
	}()
	synctest.Wait()
	return answer
}

type asked struct {
	sub driver.Subscription
	err error
	at  time.Time
}

// wakeUps receives and counts the wake-ups of sub.
func wakeUps(sub driver.Subscription) (n int) {
	for {
		select {
		case <-sub.Wake():
			n++
		default:
			return n
		}
	}
}

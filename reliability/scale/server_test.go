//realtime:ok the server of a simulation in a bubble

package scale

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// server is a simulated Redis server: one thread that executes one command after the other.
type server struct {
	store
	delay    time.Duration // of the network, one way
	service  time.Duration // of one command, a script or not
	requests chan request
	lua      *lua.LState
	scripts  map[*driver.Script]*lua.LFunction
	channels map[string]*subscription
	sent     map[string]int // the clients' commands, by kind
	executed int            // commands, those inside scripts included
}

type request struct {
	run  func() any
	done chan any
}

func newServer(delay, service time.Duration, clients int) *server {
	s := &server{
		delay: delay, service: service,
		requests: make(chan request, 4*clients+100), // the requests in the sockets
		lua:      lua.NewState(),
		scripts:  map[*driver.Script]*lua.LFunction{},
		channels: map[string]*subscription{},
		sent:     map[string]int{},
	}
	s.keys, s.publish = map[string]*value{}, s.deliver
	call := s.lua.NewFunction(s.call)
	redis := s.lua.NewTable()
	redis.RawSetString("call", call)
	redis.RawSetString("pcall", call) // no command fails here
	s.lua.SetGlobal("redis", redis)
	return s
}

// elapse waits for d in fake time.
func elapse(d time.Duration) { <-time.After(d) }

// serve executes requests until there are no more.
func (s *server) serve() {
	defer s.lua.Close()
	for r := range s.requests {
		elapse(s.service)
		r.done <- r.run()
	}
}

// send has the server run a command, and returns its reply. It is called by the clients.
func (s *server) send(ctx context.Context, run func() any) (any, error) {
	done := make(chan any, 1)
	elapse(s.delay)
	s.requests <- request{run, done}
	select {
	case reply := <-done:
		elapse(s.delay)
		return reply, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// counts returns and resets the counts.
func (s *server) counts(ctx context.Context) (sent map[string]int, executed int) {
	_, _ = s.send(ctx, func() any {
		sent, executed = s.sent, s.executed
		s.sent, s.executed = map[string]int{}, 0
		return nil
	})
	return sent, executed
}

// eval runs a script and counts it.
func (s *server) eval(script *driver.Script, keys, args []string) any {
	f := s.scripts[script]
	if f == nil {
		chunk, err := parse.Parse(strings.NewReader(script.Source()), "script")
		if err != nil {
			panic(err)
		}
		proto, err := lua.Compile(chunk, "script")
		if err != nil {
			panic(err)
		}
		f = s.lua.NewFunctionFromProto(proto)
		s.scripts[script] = f
	}
	s.lua.SetGlobal("KEYS", s.strings(keys))
	s.lua.SetGlobal("ARGV", s.strings(args))
	s.lua.Push(f)
	s.lua.Call(0, 1)
	reply := fromLua(s.lua.Get(-1))
	s.lua.Pop(1)
	kind := "releases"
	if len(args) == 9 { // see strategies/single/lua/acquire.lua
		kind = "acquires"
		if list, ok := reply.([]any); ok && list[0] == int64(0) {
			kind = "refusals"
		}
	}
	s.count(kind)
	return reply
}

func (s *server) count(kind string) {
	s.sent[kind]++
	s.executed++
}

func (s *server) strings(list []string) *lua.LTable {
	t := s.lua.CreateTable(len(list), 0)
	for _, text := range list {
		t.Append(lua.LString(text))
	}
	return t
}

// call is redis.call.
func (s *server) call(l *lua.LState) int {
	args := make([]string, l.GetTop())
	for i := range args {
		args[i] = l.Get(i + 1).String()
	}
	s.executed++
	switch reply := s.command(args).(type) {
	case nil:
		l.Push(lua.LFalse)
	case int:
		l.Push(lua.LNumber(reply))
	case string:
		l.Push(lua.LString(reply))
	case []any:
		t := l.NewTable()
		for _, v := range reply {
			t.Append(lua.LString(v.(string))) //nolint:forcetypeassert // see store.command
		}
		l.Push(t)
	}
	return 1
}

// fromLua converts a reply as Redis does.
func fromLua(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LNumber:
		return int64(v)
	case lua.LString:
		return string(v)
	case *lua.LTable:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = fromLua(v.RawGetInt(i + 1))
		}
		return list
	default:
		return nil
	}
}

// deliver publishes a message.
func (s *server) deliver(channel string) (heard int) {
	sub := s.channels[channel]
	if sub == nil {
		return 0
	}
	time.AfterFunc(s.delay, sub.notify)
	return 1
}

// client is the driver of one process.
type client struct {
	adapter.Base
	*server
	killed, frozen atomic.Bool // it sends nothing; the connections of a frozen process stay
}

type subscription struct {
	client  *client
	channel string
	wake    chan struct{}
}

func (c *client) dead() bool { return c.killed.Load() || c.frozen.Load() }

func (c *client) SetNX(ctx context.Context, key, val string, ttl time.Duration) (bool, error) {
	if c.dead() {
		return false, driver.ErrClosed
	}
	reply, err := c.send(ctx, func() any {
		c.count("SET NX")
		return c.command([]string{"SET", key, val, "PX", strconv.FormatInt(ttl.Milliseconds(), 10), "NX"})
	})
	return reply != nil, err
}

func (c *client) Eval(ctx context.Context, script *driver.Script, keys, args []string) (driver.Reply, error) {
	if c.dead() {
		return driver.Reply{}, driver.ErrClosed
	}
	keys, args = append([]string(nil), keys...), append([]string(nil), args...)
	reply, err := c.send(ctx, func() any { return c.eval(script, keys, args) })
	if err != nil {
		return driver.Reply{}, err
	}
	return driver.NewReply(reply)
}

func (c *client) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	sub := &subscription{client: c, channel: channel, wake: make(chan struct{}, 1)}
	_, err := c.send(ctx, func() any {
		c.count("SUBSCRIBE")
		c.channels[channel] = sub // each process has a channel of its own
		return nil
	})
	return sub, err
}

func (c *client) Delivery(string) driver.Delivery { return driver.DeliveryCounted }
func (c *client) Info() driver.Info               { return driver.Info{Client: "simulated"} }
func (c *client) Close() error                    { return c.Shutdown(nil) }

func (s *subscription) Wake() <-chan struct{} { return s.wake }

func (s *subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscription) Close() error {
	if s.client.frozen.Load() {
		return nil
	}
	go func() {
		_, _ = s.client.send(context.Background(), func() any {
			s.client.count("UNSUBSCRIBE")
			delete(s.client.channels, s.channel)
			return nil
		})
	}()
	return nil
}

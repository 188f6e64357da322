package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// client is the client to adapt. It sends a command once, ignores contexts, and returns error
// replies as replyError.
type client interface {
	Do(args ...string) (any, error)
	OpenFeed(ctx context.Context) (adapter.Feed, error)
}

type replyError string

func (e replyError) Error() string { return string(e) }

// toyDriver is a driver.Driver over a client.
type toyDriver struct {
	adapter.Base
	client  client
	scripts adapter.ScriptCache
	hub     *adapter.Hub
}

// New returns a driver that sends through c.
func New(c client) (driver.Driver, error) {
	if c == nil {
		return nil, driver.Invalid("New client", "nil", "a client")
	}
	return &toyDriver{client: c, hub: adapter.NewHub(c.OpenFeed)}, nil
}

func (a *toyDriver) do(ctx context.Context, args ...string) (driver.Reply, error) {
	if err := a.CheckOpen(); err != nil {
		return driver.Reply{}, err
	}
	v, err := adapter.Await(ctx, func() (any, error) { return a.client.Do(args...) })
	if text, ok := errors.AsType[replyError](err); ok {
		return driver.Reply{}, adapter.NewServerError(string(text), err)
	}
	if err != nil {
		return driver.Reply{}, err
	}
	return driver.NewReply(v)
}

func (a *toyDriver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	r, err := a.do(ctx, "SET", key, value, "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
	if err != nil || r.IsNil(0) {
		return false, err
	}
	text, err := r.Text(0)
	return text == "OK", err
}

func (a *toyDriver) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	return a.scripts.Eval(ctx, s, func(command, body string) (driver.Reply, error) {
		line := append([]string{command, body, strconv.Itoa(len(keys))}, keys...)
		return a.do(ctx, append(line, args...)...)
	})
}

func (a *toyDriver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	return a.hub.Subscribe(ctx, channel)
}

func (a *toyDriver) Info() driver.Info { return driver.Info{Client: "toy"} }
func (a *toyDriver) Close() error      { return a.Shutdown(a.hub) }

// An adapter of a client whose calls ignore contexts.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	drv, err := New(&toy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		fmt.Println(drv.SetNX(ctx, "job", "token", time.Second))
	}
	reply, err := drv.Eval(ctx, driver.NewScript("return 1"), []string{"job"}, nil)
	fmt.Println(reply.Len(), err)
	_, err = drv.Eval(ctx, driver.NewScript("return redis.call('INCR', KEYS[1])"), []string{"job"}, nil)
	fmt.Println(driver.CodeOf(err), driver.NotExecuted(err), driver.Transient(err))
	_, err = drv.Subscribe(ctx, "{job}:wake")
	fmt.Println(errors.Is(err, errors.ErrUnsupported))
	fmt.Println(drv.Close())
	_, err = drv.SetNX(ctx, "job", "token", time.Second)
	fmt.Println(err)
	// Output:
	// true <nil>
	// false <nil>
	// 1 <nil>
	// WRONGTYPE true false
	// true
	// <nil>
	// driver is closed
}

// toy is a client of a server that has one key and one script, and no messages.
type toy struct{ taken bool }

func (c *toy) Do(args ...string) (any, error) {
	switch {
	case args[0] == "SET" && c.taken:
		return nil, nil
	case args[0] == "SET":
		c.taken = true
		return "OK", nil
	case args[0] == "EVALSHA":
		return nil, replyError("NOSCRIPT No matching script. Please use EVAL.")
	case args[1] == "return 1":
		return int64(1), nil
	default:
		return nil, replyError("WRONGTYPE Operation against a key holding the wrong kind of value")
	}
}

func (c *toy) OpenFeed(context.Context) (adapter.Feed, error) { return nil, errors.ErrUnsupported }

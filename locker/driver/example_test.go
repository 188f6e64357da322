package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// client is what the adapter below adapts. It sends a command once, knows no context, and returns error replies as
// replyError.
type client interface {
	Do(args ...string) (any, error)
	OpenFeed(ctx context.Context) (driver.Feed, error)
}

type replyError string

func (e replyError) Error() string { return string(e) }

// adapter is a Driver over a client.
type adapter struct {
	driver.Base
	client client
	hub    *driver.Hub
}

// New returns a Driver that talks through c.
func New(c client) (driver.Driver, error) {
	if c == nil {
		return nil, driver.Invalid("New client", "nil", "a client")
	}
	return &adapter{client: c, hub: driver.NewHub(c.OpenFeed)}, nil
}

func (a *adapter) do(ctx context.Context, args ...string) (driver.Reply, error) {
	if err := a.Guard(); err != nil {
		return driver.Reply{}, err
	}
	v, err := driver.Await(ctx, func() (any, error) { return a.client.Do(args...) })
	if text, ok := errors.AsType[replyError](err); ok {
		return driver.Reply{}, driver.NewServerError(string(text), err)
	}
	if err != nil {
		return driver.Reply{}, err
	}
	return driver.NewReply(v)
}

func (a *adapter) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	r, err := a.do(ctx, "SET", key, value, "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
	if err != nil || r.IsNil(0) {
		return false, err
	}
	text, err := r.Text(0)
	return text == "OK", err
}

func (a *adapter) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	return driver.EvalOnce(s, func(command, body string) (driver.Reply, error) {
		line := append([]string{command, body, strconv.Itoa(len(keys))}, keys...)
		return a.do(ctx, append(line, args...)...)
	})
}

func (a *adapter) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	return a.hub.Subscribe(ctx, channel)
}

func (a *adapter) Info() driver.Info { return driver.Info{Client: "toy"} }
func (a *adapter) Close() error      { return a.Shutdown(a.hub) }

// A Driver over a client whose calls ignore their context. What all adapters share comes from this package; package
// conformance proves the rest.
func Example_adapter() {
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
	fmt.Println(driver.CodeOf(err), driver.NotExecuted(err), driver.Passing(err))
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

// toy is a client of a server with one key, one script and no messages.
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

func (c *toy) OpenFeed(context.Context) (driver.Feed, error) { return nil, errors.ErrUnsupported }

// A strategy decides by the class of an error whether a command may have been executed.
func ExampleNotExecuted() {
	for _, err := range []error{
		driver.NewServerError("READONLY You can't write against a read only replica.", nil),
		driver.NewServerError("ERR something else", nil),
		driver.NotSent(errors.New("connection refused")),
		errors.New("EOF"),
	} {
		fmt.Println(driver.NotExecuted(err), err)
	}
	// Output:
	// true server error: READONLY You can't write against a read only replica.
	// false server error: ERR something else
	// true command was not sent: connection refused
	// false EOF
}

// Keys that belong together live in one cluster slot.
func ExampleSibling() {
	for _, key := range []string{"job", "user:{7}:job", "a}b"} {
		fmt.Println(driver.Sibling(key, driver.FenceSuffix))
	}
	// Output:
	// {job}:fence true
	// user:{7}:job:fence true
	//  false
}

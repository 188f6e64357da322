package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// send sends a command and converts its reply. The conversion is part of the awaited call, so that
// a late answer has the type that strategies expect.
func send[T any](
	ctx context.Context, d *toyDriver, convert func(reply any) (T, error), args ...string,
) (T, error) {
	var zero T
	if err := d.CheckOpen(); err != nil {
		return zero, err
	}
	return adapter.Await(ctx, func() (T, error) {
		v, err := d.client.Do(args...)
		if text, refused := errors.AsType[replyError](err); refused {
			return zero, adapter.NewServerError(string(text), err)
		}
		if err != nil {
			return zero, err
		}
		return convert(v)
	})
}

func (d *toyDriver) SetNX(
	ctx context.Context, key, value string, ttl time.Duration,
) (bool, error) {
	isOK := func(reply any) (bool, error) { return reply == "OK", nil }
	ms := strconv.FormatInt(ttl.Milliseconds(), 10)
	return send(ctx, d, isOK, "SET", key, value, "NX", "PX", ms)
}

func (d *toyDriver) Eval(
	ctx context.Context, s *driver.Script, keys, args []string,
) (driver.Reply, error) {
	return d.scripts.Eval(ctx, s, func(command, body string) (driver.Reply, error) {
		words := slices.Concat([]string{command, body, strconv.Itoa(len(keys))}, keys, args)
		return send(ctx, d, driver.NewReply, words...)
	})
}

func (d *toyDriver) Subscribe(
	ctx context.Context, channel string,
) (driver.Subscription, error) {
	if err := d.CheckOpen(); err != nil {
		return nil, err
	}
	return d.hub.Subscribe(ctx, channel)
}

func (d *toyDriver) Info() driver.Info { return driver.Info{Client: "toy"} }
func (d *toyDriver) Close() error      { return d.Shutdown(d.hub) }

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
	increment := driver.NewScript("return redis.call('INCR', KEYS[1])")
	_, err = drv.Eval(ctx, increment, []string{"job"}, nil)
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

package adapter_test

import (
	"context"
	"errors"
	"fmt"
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

// New returns a driver that sends through c.
func New(c client) (driver.Driver, error) {
	if c == nil {
		return nil, &driver.InvalidError{What: "New client", Got: "nil", Allowed: "a client"}
	}
	one := adapter.Client{
		Connections: 16, Single: true,
		Send: func(_ context.Context, commands []*adapter.Command) {
			if command := commands[0]; command.Begin() {
				reply, err := c.Do(command.Words...)
				if text, refused := errors.AsType[replyError](err); refused {
					err = adapter.NewServerError(string(text), err)
				}
				command.Answer(reply, err)
			}
		},
	}
	return &adapter.Driver{
		ClientInfo: driver.Info{Client: "toy"},
		Pipelines:  adapter.NewPipeline(one),
		Hub:        adapter.NewHub(c.OpenFeed, nil),
	}, nil
}

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

// toy is a client of a server with one key and one script, and no messages.
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

// Rwhash: pages read a catalogue together, and an import writes it alone.
//
//	go run ./examples/rwhash                              an embedded server: nothing but Go is needed
//	go run ./examples/rwhash -redis redis://host:6379     the same on a real server
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/clients"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

func main() { demo.Main("rwhash", run) }

// try makes one attempt, and tells how it went.
func try(ctx context.Context, c *clients.Client, who string, mode locker.Mode) (*locker.Lock, error) {
	l, err := rwhash.New(c.Driver, rwhash.Config{Prefix: "example:"})
	if err != nil {
		return nil, err
	}
	lock, err := l.Acquire(ctx, locker.Request{Name: "catalogue", Owner: who, Mode: mode, TTL: 10 * time.Second})
	switch {
	case err == nil:
		fmt.Println(who, "holds,", mode)
	case errors.Is(err, locker.ErrNotAcquired): // an outage is another error
		fmt.Println(who, "is refused")
		return nil, nil
	}
	return lock, err
}

func run(ctx context.Context, all clients.All) error {
	one, err1 := try(ctx, all[0], "page one", locker.Shared)
	two, err2 := try(ctx, all[1], "page two", locker.Shared)
	_, err3 := try(ctx, all[2], "import", locker.Exclusive)
	// The import was refused and will come again: for a while no further reader gets in before it.
	_, err4 := try(ctx, all[0], "page three", locker.Shared)
	if err := errors.Join(err1, err2, err3, err4, one.Release(ctx), two.Release(ctx)); err != nil {
		return err
	}

	write, err := try(ctx, all[2], "import", locker.Exclusive)
	if err != nil {
		return err
	}
	_, err1 = try(ctx, all[0], "page one", locker.Shared)
	// It has written, and checks what it wrote: others may read with it, and nobody writes in between.
	err2 = write.Downgrade(ctx)
	fmt.Println("import goes on,", write.Mode())
	one, err3 = try(ctx, all[0], "page one", locker.Shared)
	return errors.Join(err1, err2, err3, one.Release(ctx), write.Release(ctx))
}

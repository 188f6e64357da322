// Single: one instance of a service at a time makes a report, whatever client each of them uses.
//
//	go run ./examples/single                              an embedded server: nothing but Go is needed
//	go run ./examples/single -redis redis://host:6379     the same on a real server
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/clients"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func main() { demo.Main("single", run) }

func run(ctx context.Context, all clients.All) error {
	// Two instances, on different clients. A bare strategy makes one attempt and does not wait.
	one, err := single.New(all[0].Driver, single.Config{Prefix: "example:"})
	if err != nil {
		return err
	}
	two, err := single.New(all[1].Driver, single.Config{Prefix: "example:"})
	if err != nil {
		return err
	}
	req := locker.Request{Name: "report", TTL: 10 * time.Second, Fenced: true}

	req.Owner, req.Note = "instance one", "makes the report"
	first, err := one.Acquire(ctx, req)
	if err != nil {
		return err
	}
	fmt.Println("instance one holds", first.Name())

	req.Owner, req.Note = "instance two", ""
	_, err = two.Acquire(ctx, req)
	var held *locker.ContentionError
	if !errors.As(err, &held) { // an outage, for one
		return fmt.Errorf("instance two: %w", err)
	}
	fmt.Printf("instance two is refused: %s %s\n", held.Owner, held.Note)

	if err := first.Release(ctx); err != nil {
		return err
	}
	second, err := two.Acquire(ctx, req)
	if err != nil {
		return err
	}
	fmt.Println("instance two holds", second.Name())

	// What instance one writes late is refused where it is written: by the fencing token.
	stored := second.Fence()
	fmt.Println("a late write of instance one counts:", first.Fence() >= stored)
	fmt.Println("instance one knows:", first.Err())
	return second.Release(ctx)
}

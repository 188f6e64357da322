// Reentrant: a transfer locks an account, and so does each booking that it is made of.
//
//	go run ./examples/reentrant                              an embedded server: nothing but Go is needed
//	go run ./examples/reentrant -redis redis://host:6379     the same on a real server
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/clients"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

func main() { demo.Main("reentrant", run) }

var account = locker.Request{Name: "example:account", TTL: 10 * time.Second}

// bank books. Each of its methods locks what it needs, and may call the others.
type bank struct {
	locks *reentrant.Locker
}

// book is called alone, and by transfer: there the context carries the owner of the lock, which enters again.
func (b *bank) book(ctx context.Context, what string) error {
	return locker.Do(ctx, b.locks, account, func(ctx context.Context, _ *locker.Lock) error {
		state, err := b.locks.Inspect(ctx, account.Name)
		if err != nil {
			return err
		}
		fmt.Printf("%s, under %d hold(s)\n", what, state.Holds)
		return nil
	})
}

func (b *bank) transfer(ctx context.Context) error {
	return locker.Do(ctx, b.locks, account, func(inside context.Context, _ *locker.Lock) error {
		if err := b.book(inside, "debit"); err != nil {
			return err
		}
		// Somebody else, who has no part in the transfer, is refused.
		if err := b.book(ctx, "theft"); !errors.Is(err, locker.ErrNotAcquired) {
			return fmt.Errorf("somebody else booked: %w", err)
		}
		fmt.Println("somebody else is refused")
		return b.book(inside, "fee")
	})
}

func run(ctx context.Context, all clients.All) error {
	locks, err := reentrant.New(all[0].Driver, reentrant.Config{})
	if err != nil {
		return err
	}
	b := &bank{locks}
	if err := b.book(ctx, "deposit"); err != nil {
		return err
	}
	return b.transfer(ctx)
}

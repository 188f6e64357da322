package recipes_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// accounts locks an account in each of its methods. They may call one another.
type accounts struct{ locks locker.Locker }

func (a accounts) book(ctx context.Context, what string) error {
	return locker.Do(ctx, a.locks, locker.Request{Name: "account:7"}, func(context.Context, *locker.Lock) error {
		fmt.Println("book", what)
		return nil
	})
}

// transfer holds the lock for both bookings. Do's context carries the owner of the lock, so book
// enters the same lock; without it book would wait for transfer.
func (a accounts) transfer(ctx context.Context) error {
	return locker.Do(ctx, a.locks, locker.Request{Name: "account:7"}, func(ctx context.Context, _ *locker.Lock) error {
		if err := a.book(ctx, "debit"); err != nil {
			return err
		}
		return a.book(ctx, "fee")
	})
}

// A method with a lock calls others with a lock of the same name.
func Example_nestedCalls() {
	b := connect()
	defer b.close()
	strategy := locker.Must(reentrant.New(b.driver, reentrant.Config{}))
	a := accounts{locker.Must(holdfast.Wrap(strategy, holdfast.Config{}))}
	fmt.Println("error:", a.transfer(context.Background()))
	// Output:
	// book debit
	// book fee
	// error: <nil>
}

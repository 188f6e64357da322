package recipes_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// accounts locks an account in each of its methods, which may call one another.
type accounts struct{ locks locker.Locker }

func (a accounts) book(ctx context.Context, what string) error {
	return locker.Do(ctx, a.locks, locker.Request{Name: "account:7"}, func(context.Context, *locker.Lock) error {
		fmt.Println("book", what)
		return nil
	})
}

// transfer holds the lock for both bookings. The context that Do passes carries the owner of the
// lock, so that book enters the same lock; without it book would wait for transfer.
func (a accounts) transfer(ctx context.Context) error {
	return locker.Do(ctx, a.locks, locker.Request{Name: "account:7"}, func(ctx context.Context, _ *locker.Lock) error {
		if err := a.book(ctx, "debit"); err != nil {
			return err
		}
		return a.book(ctx, "fee")
	})
}

// A method that holds a lock calls others that lock the same name.
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

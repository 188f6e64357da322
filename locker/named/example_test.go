package named_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/named"
)

// Storage is what other programs ask for, such as the Locker of certmagic.
type Storage interface {
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
}

func Example() {
	ctx := context.Background()
	var l locker.Locker = lockertest.New() // in a program: holdfast.New(drv, holdfast.Config{})
	locks := locker.Must(named.New(l, locker.Request{Note: "issues certificates"}))

	var m Storage = locks
	fmt.Println(m.Lock(ctx, "example.com"))
	fmt.Println(locks.TryLock(ctx, "example.com"))
	fmt.Println(m.Unlock(ctx, "example.com"))
	fmt.Println(errors.Is(m.Unlock(ctx, "example.com"), locker.ErrNotHeld))
	// Output:
	// <nil>
	// false <nil>
	// <nil>
	// true
}

// A lost lock blocks nobody, and its Unlock leaves the next lock of the name alone.
func ExampleMutex_Unlock() {
	ctx, l := context.Background(), lockertest.New()
	locks := locker.Must(named.New(l, locker.Request{}))
	fmt.Println(locks.Lock(ctx, "report"))
	l.Expire("report") // the process was paused for longer than the lease
	fmt.Println(locks.Lock(ctx, "report"))

	fmt.Println(errors.Is(locks.Unlock(ctx, "report"), locker.ErrLost))
	fmt.Println(locks.Unlock(ctx, "report"))
	// Output:
	// <nil>
	// <nil>
	// true
	// <nil>
}

// Only one process does the work; the others do not wait for it.
func ExampleMutex_TryLock() {
	ctx, l := context.Background(), lockertest.New()
	here, there := locker.Must(named.New(l, locker.Request{})), locker.Must(named.New(l, locker.Request{}))
	fmt.Println(here.TryLock(ctx, "report"))
	fmt.Println(there.TryLock(ctx, "report"))
	fmt.Println(here.Unlock(ctx, "report"))
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
}

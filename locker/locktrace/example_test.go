package locktrace_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// With reports the events of locks acquired with a context.
func ExampleWith() {
	ctx := locktrace.With(context.Background(), &locktrace.Trace{
		Acquired: func(_ context.Context, i locktrace.AcquiredInfo) { fmt.Println("acquired", i.Name, "from", i.Strategy) },
		Lost:     func(_ context.Context, i locktrace.LostInfo) { fmt.Println("lost", i.Name) },
		Released: func(_ context.Context, i locktrace.ReleasedInfo) { fmt.Println("released", i.Name, i.Err) },
	})
	err := locker.Do(ctx, lockertest.New(), locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error { return nil })
	fmt.Println(err)
	// Output:
	// acquired a from lockertest
	// released a <nil>
	// <nil>
}

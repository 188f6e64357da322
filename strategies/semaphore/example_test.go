package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// Up to three exports run at a time, in all processes. A large one counts as two.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	drv := locker.Must(goredis.New(client))
	defer drv.Close()

	ctx := context.Background()
	l := locker.Must(semaphore.New(drv, semaphore.Config{Permits: 3}))
	small := locker.Must(l.Acquire(ctx, locker.Request{Name: "exports"}))
	large := locker.Must(l.Acquire(ctx, locker.Request{Name: "exports", Permits: 2}))

	_, err = l.Acquire(ctx, locker.Request{Name: "exports"})
	fmt.Println("a fourth permit:", errors.Is(err, locker.ErrNotAcquired))
	state, err := l.Inspect(ctx, "exports")
	fmt.Println(state.Holds, "holders,", state.Free, "of", state.Permits, "free", err)
	fmt.Println(large.Release(ctx))
	state, err = l.Inspect(ctx, "exports")
	fmt.Println(state.Holds, "holder,", state.Free, "of", state.Permits, "free", err)
	fmt.Println(small.Release(ctx))
	// Output:
	// a fourth permit: true
	// 2 holders, 0 of 3 free <nil>
	// <nil>
	// 1 holder, 2 of 3 free <nil>
	// <nil>
}

// A program with another limit gets an error. With Resize it sets the limit, even while permits are
// held.
func ExampleConfig_resize() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	drv := locker.Must(goredis.New(client))
	defer drv.Close()

	ctx, one := context.Background(), locker.Request{Name: "exports"}
	old := locker.Must(semaphore.New(drv, semaphore.Config{Permits: 1}))
	held := locker.Must(old.Acquire(ctx, one))

	wrong := locker.Must(semaphore.New(drv, semaphore.Config{Permits: 2}))
	_, err = wrong.Acquire(ctx, one)
	var limit *semaphore.LimitError
	fmt.Println(errors.As(err, &limit), limit.Have, limit.Want)

	resized := locker.Must(semaphore.New(drv, semaphore.Config{Permits: 2, Resize: true}))
	second := locker.Must(resized.Acquire(ctx, one))
	fmt.Println(held.Release(ctx), second.Release(ctx))
	// Output:
	// true 1 2
	// <nil> <nil>
}

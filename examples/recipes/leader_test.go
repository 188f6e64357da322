package recipes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
)

// The first candidate leads until it stops, then the second one.
func Example_leader() {
	b := connect()
	defer b.close()
	l := locker.Must(holdfast.New(b.driver, holdfast.Config{}))

	run := func(ctx context.Context, candidate string) (leads chan int64, stopped chan error) {
		leads, stopped = make(chan int64), make(chan error)
		go func() {
			stopped <- leader.Run(ctx, l, leader.Config{
				Name: "leader", TTL: 30 * time.Second, Note: candidate,
				Lead: func(ctx context.Context, term int64) error {
					leads <- term // each term has a higher number
					<-ctx.Done()  // the work goes here; it stops soon after ctx ends
					return ctx.Err()
				},
			})
		}()
		return leads, stopped
	}
	ctxA, stopA := context.WithCancel(context.Background())
	leadsA, stoppedA := run(ctxA, "a")
	first := <-leadsA
	ctxB, stopB := context.WithCancel(context.Background())
	leadsB, stoppedB := run(ctxB, "b")
	stopA()
	fmt.Println("a stopped:", <-stoppedA) // its lock is released
	fmt.Println("b leads a later term:", <-leadsB > first)
	stopB()
	fmt.Println("b stopped:", <-stoppedB)
	// Output:
	// a stopped: <nil>
	// b leads a later term: true
	// b stopped: <nil>
}

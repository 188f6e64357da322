package recipes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
)

// lead calls work whenever this candidate is the leader, until ctx ends. work must return soon
// after its own context ends, which it does when the leadership is lost.
func lead(ctx context.Context, l locker.Locker, candidate string, work func(ctx context.Context, term int64) error) {
	req := locker.Request{Name: "leader", TTL: 15 * time.Second, Fenced: true, Note: candidate}
	for ctx.Err() == nil {
		err := locker.Do(ctx, l, req, func(ctx context.Context, lock *locker.Lock) error {
			return work(ctx, lock.Fence()) // each term has a higher number
		})
		if err != nil && ctx.Err() == nil {
			fmt.Println(candidate, "is a candidate again:", err) // log it
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
}

// The first candidate leads until it stops, then the second one.
func Example_leader() {
	b := connect()
	defer b.close()
	l := locker.Must(holdfast.New(b.driver, holdfast.Config{}))

	run := func(ctx context.Context, candidate string) (leads, stopped chan struct{}) {
		leads, stopped = make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			lead(ctx, l, candidate, func(ctx context.Context, _ int64) error {
				fmt.Println(candidate, "leads")
				close(leads)
				<-ctx.Done()
				return nil
			})
		}()
		return leads, stopped
	}
	ctxA, stopA := context.WithCancel(context.Background())
	leadsA, stoppedA := run(ctxA, "a")
	<-leadsA
	ctxB, stopB := context.WithCancel(context.Background())
	leadsB, stoppedB := run(ctxB, "b")
	stopA()
	<-stoppedA // its lock is released
	<-leadsB
	stopB()
	<-stoppedB
	// Output:
	// a leads
	// b leads
}

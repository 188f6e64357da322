//realtime:ok an example of a Locker in memory

package leader_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// locks returns a Locker in memory that waits and renews. In a program it is holdfast.New over a
// driver.
func locks() locker.Locker {
	return locker.Must(holdfast.Wrap(lockertest.New(), holdfast.Config{}))
}

// A service runs this in every process. One of them leads, until its ctx ends, for example by
// signal.NotifyContext.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	err := leader.Run(ctx, locks(), leader.Config{
		Name: "billing", TTL: 15 * time.Second, Note: "host-1",
		Lead: func(ctx context.Context, term int64) error {
			fmt.Println("leads in term", term)
			stop() // the service is to end
			<-ctx.Done()
			return ctx.Err()
		},
	})
	fmt.Println("stopped:", err)
	// Output:
	// leads in term 1
	// stopped: <nil>
}

// Lead returns an error to let another Candidate try, and nil when the work is done.
func ExampleRun_workThatEnds() {
	calls := 0
	err := leader.Run(context.Background(), locks(), leader.Config{
		Name: "migration",
		Lead: func(context.Context, int64) error {
			if calls++; calls == 1 {
				return errors.New("the database is not there yet") // log it
			}
			return nil
		},
	})
	fmt.Println("called", calls, "times:", err)
	// Output: called 2 times: <nil>
}

// IsLeader tells the rest of the program whether this process leads.
func ExampleCandidate_IsLeader() {
	leads, stop := make(chan struct{}), make(chan struct{})
	candidate := locker.Must(leader.New(locks(), leader.Config{
		Name: "cron",
		Lead: func(context.Context, int64) error {
			close(leads)
			<-stop
			return nil
		},
	}))
	ctx := context.Background()
	fmt.Println("before:", candidate.IsLeader())
	ended := make(chan error)
	go func() { ended <- candidate.Run(ctx) }()
	<-leads
	fmt.Println("while it leads:", candidate.IsLeader())
	close(stop)
	fmt.Println("ended:", <-ended)
	fmt.Println("after:", candidate.IsLeader())
	// Output:
	// before: false
	// while it leads: true
	// ended: <nil>
	// after: false
}

// Other processes learn who leads, to send their requests there.
func ExampleObserve() {
	l := locks()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- leader.Run(ctx, l, leader.Config{
			Name: "billing", Note: "10.0.0.7:8080",
			Lead: func(ctx context.Context, _ int64) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
	}()
	for now, err := range leader.Observe(ctx, l, "billing", 10*time.Millisecond) {
		if err != nil {
			fmt.Println("unknown:", err) // the next one comes once the server answers
			continue
		}
		if now.Term > 0 {
			fmt.Println("term", now.Term, "is led by", now.Note)
			break
		}
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// term 1 is led by 10.0.0.7:8080
	// <nil>
}

// A store that remembers the highest term refuses the late writes of a former leader.
func ExampleCandidate_Term() {
	var highest int64
	write := func(term int64) string {
		if term < highest {
			return "refused"
		}
		highest = term
		return "written"
	}
	var candidate *leader.Candidate
	candidate = locker.Must(leader.New(locks(), leader.Config{Name: "billing", Lead: func(context.Context, int64) error {
		term, leads := candidate.Term()
		fmt.Println("term", term, leads, write(term))
		return nil
	}}))
	ctx := context.Background()
	fmt.Println(candidate.Run(ctx), candidate.Run(ctx))
	fmt.Println("a late write in term 1:", write(1))
	// Output:
	// term 1 true written
	// term 2 true written
	// <nil> <nil>
	// a late write in term 1: refused
}

package clientgo_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/holdfast-go/holdfast/integrations/clientgo"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// A controller leads until its ctx ends, for example by signal.NotifyContext. The lock is released
// when the work has returned.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	// In a program: single.New(drv, single.Config{}), over a driver such as goredis.New(client).
	lock, err := clientgo.New(lockertest.New(), clientgo.Config{Name: "kube-system/billing", Identity: "billing-7d4b9"})
	if err != nil {
		fmt.Println(err)
		return
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		Name:            lock.Describe(),
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lock.Lead(func(ctx context.Context, term int64) {
				fmt.Println("works in term", term)
				stop() // the service is to end
				<-ctx.Done()
				fmt.Println("has cleaned up")
			}),
			OnStoppedLeading: func() { fmt.Println("released the lock") },
		},
	})
	// Output:
	// works in term 1
	// has cleaned up
	// released the lock
}

package history_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/reliability/history"
)

func Example() {
	ctx := context.Background()
	lockers := lockertest.New()
	rec := history.NewRecorder(time.Now(), nil)
	var store history.Store

	alice, bob := rec.Client(1), rec.Client(2)
	req := locker.Request{Name: "invoice", TTL: time.Minute, Fenced: true}
	hold, err := alice.Acquire(ctx, lockers, req)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = bob.Acquire(ctx, lockers, req)
	fmt.Println("bob:", history.OutcomeOf(err))
	fmt.Println("held:", hold.Held(), "written:", hold.Write(store.Accept) == nil, "released:", hold.Release(ctx) == nil)

	events := history.Settle(rec.Events(), rec.Now())
	res := history.Check(events, history.Rules{Model: history.Exclusive, Linger: time.Second}, time.Minute)
	fmt.Println(res.Operations, "operations, promises", res.Verdict)

	// The same history with a second holder.
	events[1].Outcome, events[1].Hold = history.OK, events[1].ID
	fmt.Println(history.Check(events, history.Rules{Model: history.Exclusive}, time.Minute).Verdict)
	// Output:
	// bob: refused
	// held: true written: true released: true
	// 5 operations, promises kept
	// violation
}

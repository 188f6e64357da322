package recipes_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// updateInvoice writes unless the holder of a later fencing token has written: no row is affected
// then. The table needs a column: ALTER TABLE invoices ADD COLUMN fence BIGINT NOT NULL DEFAULT 0.
const updateInvoice = `UPDATE invoices SET state = $1, fence = $2 WHERE id = $3 AND fence <= $2`

// invoices stands for a table of a database.
type invoices map[int]struct {
	state string
	fence int64
}

// exec does what updateInvoice does, and returns how many rows it affected.
func (t invoices) exec(_, state string, fence int64, id int) int {
	row := t[id]
	if row.fence > fence || fence == 0 { // 0: the lock was not acquired with Fenced
		return 0
	}
	row.state, row.fence = state, fence
	t[id] = row
	return 1
}

// A holder that was paused for longer than its lease writes late. Its fencing token is older than
// that of the next holder, who has written since.
func Example_fencingATable() {
	b := connect()
	defer b.close()
	ctx, table := context.Background(), invoices{42: {"open", 0}}
	req := locker.Request{Name: "invoice:42", Fenced: true}
	l := locker.Must(single.New(b.driver, single.Config{})) // nothing renews its locks
	paused, err := l.Acquire(ctx, req)
	if err != nil {
		panic(err)
	}
	b.server.FastForward(paused.TTL()) // the process is paused until its lease is over

	err = locker.Do(ctx, l, req, func(_ context.Context, lock *locker.Lock) error {
		fmt.Println("the next holder: rows affected:", table.exec(updateInvoice, "paid", lock.Fence(), 42))
		return nil
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("the paused one: rows affected:", table.exec(updateInvoice, "cancelled", paused.Fence(), 42))
	fmt.Println("the invoice is", table[42].state)
	// Output:
	// the next holder: rows affected: 1
	// the paused one: rows affected: 0
	// the invoice is paid
}

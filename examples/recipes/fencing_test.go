package recipes_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"
	_ "github.com/ncruces/go-sqlite3/embed"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// These statements are for Postgres and for SQLite.
const (
	createInvoices = `
		CREATE TABLE invoices (
			id    BIGINT PRIMARY KEY,
			state TEXT   NOT NULL,
			fence BIGINT NOT NULL DEFAULT 0 -- the highest fencing token that has written
		)`
	// For a row perhaps not there yet.
	upsertInvoice = `
		INSERT INTO invoices (id, state, fence) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, fence = excluded.fence
		WHERE invoices.fence <= excluded.fence`
	// For an existing row.
	updateInvoice = `UPDATE invoices SET state = $1, fence = $2 WHERE id = $3 AND fence <= $2`
	// For an operator after a break, with State.Fence + 1.
	raiseInvoiceFence = `UPDATE invoices SET fence = $1 WHERE id = $2 AND fence < $1`

	createFences = `
		CREATE TABLE fences (
			name  TEXT   PRIMARY KEY, -- of the lock
			fence BIGINT NOT NULL     -- the highest fencing token that has written
		)`
	// The first statement of a transaction under the lock. It locks the row of the lock until the
	// commit, so no holder of another token writes in between.
	enterFence = `
		INSERT INTO fences (name, fence) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET fence = excluded.fence
		WHERE fences.fence <= excluded.fence`
)

// errStale is returned for a write under an ended hold: a later holder has written, or an operator
// has broken the hold.
var errStale = errors.New("stale fencing token: nothing was written")

// execer is a *sql.DB or a *sql.Tx.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// fenced runs a statement that checks fence and stores it, and returns errStale if it affects no
// row.
func fenced(ctx context.Context, db execer, fence int64, query string, args ...any) error {
	if fence == 0 {
		return errors.New("no fencing token: the lock was acquired without Request.Fenced")
	}
	result, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err == nil && rows == 0 {
		err = errStale
	}
	return err
}

// setState writes the state of an invoice, perhaps a new one.
func setState(ctx context.Context, db execer, fence int64, id int, state string) error {
	return fenced(ctx, db, fence, upsertInvoice, id, state, fence)
}

// transact runs several writes under one lock in a transaction. None of them is committed if a
// later holder has entered.
func transact(ctx context.Context, db *sql.DB, lock *locker.Lock, write func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a Commit it does nothing
	if err := fenced(ctx, tx, lock.Fence(), enterFence, lock.Name(), lock.Fence()); err != nil {
		return err
	}
	if err := write(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// database returns an empty SQLite database in memory.
func database() *sql.DB {
	db := locker.Must(sql.Open("sqlite3", ":memory:"))
	db.SetMaxOpenConns(1) // another connection would have a database of its own
	for _, create := range []string{createInvoices, createFences} {
		locker.Must(db.ExecContext(context.Background(), create))
	}
	return db
}

func stateOf(db *sql.DB, id int) (state string) {
	if err := db.QueryRowContext(context.Background(), `SELECT state FROM invoices WHERE id = $1`, id).Scan(&state); err != nil {
		return err.Error()
	}
	return state
}

// A holder is paused for longer than its lease, as by a garbage collection or a frozen machine. It
// wakes up and writes. The next holder has written since.
func Example_fencingATable() {
	b, db := connect(), database()
	defer b.close()
	defer db.Close()
	ctx := context.Background()
	req := locker.Request{Name: "invoice:42", Fenced: true}
	l := locker.Must(single.New(b.driver, single.Config{})) // nothing renews its locks

	paused := locker.Must(l.Acquire(ctx, req))
	fmt.Println("first holder:", setState(ctx, db, paused.Fence(), 42, "open"))
	b.server.FastForward(paused.TTL()) // it is paused until its lease is over

	err := locker.Do(ctx, l, req, func(ctx context.Context, lock *locker.Lock) error {
		return setState(ctx, db, lock.Fence(), 42, "paid")
	})
	fmt.Println("next holder:", err)
	fmt.Println("first holder, late:", setState(ctx, db, paused.Fence(), 42, "cancelled"))
	fmt.Println("the invoice is", stateOf(db, 42))
	// Output:
	// first holder: <nil>
	// next holder: <nil>
	// first holder, late: stale fencing token: nothing was written
	// the invoice is paid
}

// A holder hangs, and an operator breaks its hold. It must not write from then on, even if nobody
// else has written yet.
func Example_fencingABrokenLock() {
	b, db := connect(), database()
	defer b.close()
	defer db.Close()
	ctx := context.Background()
	req := locker.Request{Name: "invoice:43", Fenced: true}
	l := locker.Must(single.New(b.driver, single.Config{}))

	hangs := locker.Must(l.Acquire(ctx, req))
	fmt.Println("it writes:", setState(ctx, db, hangs.Fence(), 43, "open"))

	state := locker.Must(locker.Break(ctx, l, "invoice:43"))
	locker.Must(db.ExecContext(ctx, raiseInvoiceFence, state.Fence+1, 43))
	fmt.Println("it writes after the break:", setState(ctx, db, hangs.Fence(), 43, "cancelled"))

	err := locker.Do(ctx, l, req, func(ctx context.Context, lock *locker.Lock) error {
		return setState(ctx, db, lock.Fence(), 43, "paid")
	})
	fmt.Println("next holder:", err)
	fmt.Println("the invoice is", stateOf(db, 43))
	// Output:
	// it writes: <nil>
	// it writes after the break: stale fencing token: nothing was written
	// next holder: <nil>
	// the invoice is paid
}

// One lock protects several rows. The late transaction is rolled back as a whole.
func Example_fencingATransaction() {
	b, db := connect(), database()
	defer b.close()
	defer db.Close()
	ctx := context.Background()
	req := locker.Request{Name: "customer:7", Fenced: true}
	l := locker.Must(single.New(b.driver, single.Config{}))
	set := func(state string) func(*sql.Tx) error {
		return func(tx *sql.Tx) error {
			for _, id := range []int{1, 2} {
				if _, err := tx.ExecContext(ctx, `INSERT INTO invoices (id, state) VALUES ($1, $2)
					ON CONFLICT (id) DO UPDATE SET state = excluded.state`, id, state); err != nil {
					return err
				}
			}
			return nil
		}
	}

	paused := locker.Must(l.Acquire(ctx, req))
	b.server.FastForward(paused.TTL())
	err := locker.Do(ctx, l, req, func(ctx context.Context, lock *locker.Lock) error {
		return transact(ctx, db, lock, set("paid"))
	})
	fmt.Println("next holder:", err)
	fmt.Println("first holder, late:", transact(ctx, db, paused, set("cancelled")))
	fmt.Println("the invoices are", stateOf(db, 1), "and", stateOf(db, 2))
	// Output:
	// next holder: <nil>
	// first holder, late: stale fencing token: nothing was written
	// the invoices are paid and paid
}

// Each statement writes with the token of the last writer or a higher one, and with no other.
func TestFencedStatements(t *testing.T) {
	t.Parallel()
	type test struct {
		query string
		args  func(fence int64) []any
	}
	check.Each(t, map[string]test{
		"update": {updateInvoice, func(fence int64) []any { return []any{"paid", fence, 42} }},
		"upsert": {upsertInvoice, func(fence int64) []any { return []any{42, "paid", fence} }},
		"enter":  {enterFence, func(fence int64) []any { return []any{"invoice:42", fence} }},
	}, func(t *testing.T, tt test) {
		db := database()
		defer db.Close()
		locker.Must(db.ExecContext(t.Context(), upsertInvoice, 42, "open", 1))
		var stale []bool
		for _, fence := range []int64{3, 3, 2, 4} {
			err := fenced(t.Context(), db, fence, tt.query, tt.args(fence)...)
			if err != nil && !errors.Is(err, errStale) {
				t.Fatal(err)
			}
			stale = append(stale, err != nil)
		}
		check.EqualSlices(t, "tokens 3, 3, 2 and 4 are stale", stale, []bool{false, false, true, false})
		if err := fenced(t.Context(), db, 0, tt.query, tt.args(0)...); err == nil || errors.Is(err, errStale) {
			t.Errorf("without a token: %v", err)
		}
	})
}

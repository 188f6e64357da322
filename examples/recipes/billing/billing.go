// Package billing is a library that takes locks. Its caller chooses the server, the client and the
// strategy; tests give it a Locker in memory.
package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// ErrBusy means: the customer is being billed elsewhere.
var ErrBusy = errors.New("billing: the customer is being billed")

// Store keeps invoices. It refuses an invoice with a lower fencing token than the highest one it has
// seen for the customer.
type Store interface {
	Unbilled(ctx context.Context, customer string) (orders []string, err error)
	AddInvoice(ctx context.Context, customer, order string, fence int64) error
}

// Biller bills customers, each by one process at a time.
type Biller struct {
	locks locker.Locker
	store Store
}

// New returns a Biller. locks must renew its locks (holdfast.New, holdfast.Wrap), because billing
// may take longer than a lease, and must give fencing tokens. The names of its locks begin with
// "billing:". Bill waits for a lock only if locks does.
func New(locks locker.Locker, store Store) *Biller { return &Biller{locks, store} }

// Bill makes an invoice of each unbilled order of a customer. It waits for two seconds at most if
// the customer is being billed elsewhere, and then returns ErrBusy. If the lock is lost, it stops
// before the next invoice, and its error matches locker.ErrLost; call it again for the rest.
func (b *Biller) Bill(ctx context.Context, customer string) error {
	ran, err := locker.Try(ctx, b.locks, locker.Request{
		Name: "billing:" + customer, MaxWait: 2 * time.Second, Fenced: true,
	}, func(ctx context.Context, lock *locker.Lock) error { // ctx ends when the lock is lost
		orders, err := b.store.Unbilled(ctx, customer)
		for i := 0; i < len(orders) && err == nil; i++ {
			err = b.store.AddInvoice(ctx, customer, orders[i], lock.Fence())
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("billing: %w", err)
	case !ran:
		return ErrBusy
	default:
		return nil
	}
}

package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// handingOver returns a chain whose processes keep a lock for their own waiters for 10 ms at a time.
func handingOver(drv driver.Driver) (locker.Locker, error) {
	return holdfast.New(drv, holdfast.Config{HandOver: 10 * time.Millisecond})
}

// inOrder returns a chain that serves the waiters of all processes in the order of their arrival.
func inOrder(drv driver.Driver) (locker.Locker, error) {
	strategy, err := single.New(drv, single.Config{Fair: true})
	if err != nil {
		return nil, err
	}
	return holdfast.Wrap(strategy, holdfast.Config{})
}

// The goroutines of two processes add to one counter under one hot lock.
func Example_hotLock() {
	b := connect()
	defer b.close()
	for name, chain := range map[string]func(driver.Driver) (locker.Locker, error){"hand-over": handingOver, "order": inOrder} {
		counted := 0
		var all sync.WaitGroup
		for range 2 {
			l := locker.Must(chain(b.driver))
			for range 50 {
				all.Go(func() {
					err := locker.Do(context.Background(), l, locker.Request{Name: "hot:" + name}, func(context.Context, *locker.Lock) error {
						counted++
						return nil
					})
					if err != nil {
						panic(err)
					}
				})
			}
		}
		all.Wait()
		fmt.Println(name, counted)
	}
	// Unordered output:
	// hand-over 100
	// order 100
}

const shelves = 4 // as many reservations of an article go on at a time

var errSoldOut = errors.New("sold out")

// reserve takes one item of an article, with its stock spread over several shelves, each under its
// own name. It passes by taken shelves, and waits for them only if the others are empty.
func reserve(ctx context.Context, l locker.Locker, article string, first int, stock []int) error {
	var taken []int // shelves held by others
	sold := false
	shelf := func(i int) (locker.Request, func(context.Context, *locker.Lock) error) {
		return locker.Request{Name: fmt.Sprintf("stock:%s:%d", article, i)}, func(context.Context, *locker.Lock) error {
			if sold = stock[i] > 0; sold {
				stock[i]--
			}
			return nil
		}
	}
	for n := range shelves {
		i := (first + n) % shelves // others begin elsewhere
		req, sell := shelf(i)
		ran, err := locker.Try(ctx, l, req, sell)
		if err != nil || sold {
			return err
		}
		if !ran {
			taken = append(taken, i)
		}
	}
	for _, i := range taken {
		req, sell := shelf(i)
		if err := locker.Do(ctx, l, req, sell); err != nil || sold {
			return err
		}
	}
	return errSoldOut
}

// Reservations of one article find each item once, and then that it is sold out.
func TestReserve(t *testing.T) {
	t.Parallel()
	b := connect()
	t.Cleanup(b.close)
	patient := locker.Must(single.New(b.driver, single.Config{TTL: time.Hour, AttemptTimeout: time.Minute})) // Try makes one attempt
	l := locker.Must(holdfast.Wrap(patient, holdfast.Config{}))
	stock := []int{3, 0, 5, 2}
	var mu sync.Mutex
	var sold, refused int
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			err := reserve(t.Context(), l, "42", i, stock)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				sold++
			case errors.Is(err, errSoldOut):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if sold != 10 || refused != 10 {
		t.Errorf("%d sold, %d refused", sold, refused)
	}
}

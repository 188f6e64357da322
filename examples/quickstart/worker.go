package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	lockName   = "quickstart:{counter}"
	counterKey = "quickstart:{counter}:value"
	thinking   = 20 * time.Millisecond // under the lock
	resting    = 10 * time.Millisecond // between rounds
)

//go:embed read.lua
var readLua string

//go:embed write.lua
var writeLua string

var (
	readScript  = driver.NewScript(readLua)
	writeScript = driver.NewScript(writeLua)
)

// worker works through one of the clients.
type worker struct {
	*clients.Client
	locker locker.Locker
}

func newWorker(c *clients.Client) (*worker, error) {
	l, err := holdfast.New(c.Driver, holdfast.Config{})
	return &worker{c, l}, err
}

// work takes the lock rounds times and counts up by one each time.
func (w *worker) work(ctx context.Context, log *journal, rounds int) error {
	for round := range rounds {
		began := time.Now()
		req := locker.Request{
			Name: lockName, TTL: 10 * time.Second, Fenced: true, Owner: w.Name, Note: fmt.Sprintf("round %d", round+1),
		}
		err := locker.Do(locker.WithTrace(ctx, log.trace(w.Name)), w.locker, req, func(ctx context.Context, lock *locker.Lock) error {
			log.linef(w.Name, "holds", "fence %d, waited %v", lock.Fence(), log.waited(time.Since(began)))
			now, err := w.counter(ctx)
			if err != nil {
				return err
			}
			// Whoever else read the counter meanwhile would write the same number.
			if err := pause(ctx, thinking); err != nil {
				return err
			}
			if err := w.write(ctx, now+1, lock.Fence()); err != nil {
				return err
			}
			log.linef(w.Name, "counts", "%d -> %d", now, now+1)
			return nil
		})
		if err == nil {
			err = pause(ctx, resting)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	return nil
}

// pause waits for d, or until ctx ends: when the lock is lost, for one.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *worker) counter(ctx context.Context) (int, error) {
	reply, err := w.Driver.Eval(ctx, readScript, []string{counterKey}, nil)
	if err != nil {
		return 0, err
	}
	value, err := reply.Int(0)
	return int(value), err
}

// write stores the counter, unless a later holder wrote before: that is what fencing tokens are for.
func (w *worker) write(ctx context.Context, value int, fence int64) error {
	reply, err := w.Driver.Eval(ctx, writeScript, []string{counterKey}, []string{fmt.Sprint(value), fmt.Sprint(fence)})
	if err != nil {
		return err
	}
	if written, err := reply.Int(0); err != nil || written == 0 {
		return fmt.Errorf("fence %d is too old to write (%w)", fence, locker.ErrLost)
	}
	return nil
}

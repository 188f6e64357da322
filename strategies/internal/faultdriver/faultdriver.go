// Package faultdriver is a driver for tests whose commands fail by plan: a reply is lost, a command
// is executed late, or never.
package faultdriver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// ErrCut is the error of a command whose answer is lost.
var ErrCut = errors.New("connection cut")

// Fault is the fate of one command.
type Fault struct {
	Lose  bool          // the command is executed, its answer is lost
	Late  time.Duration // the answer is lost at once; the command is executed this much later
	Hang  bool          // no answer comes, and the command is never executed
	Delay time.Duration // the answer comes this much later
	Err   error         // this error, not executed
}

// Driver is a driver whose commands fail by plan; after the plan all is well.
type Driver struct {
	driver.Driver
	// T fails if the plan cannot be kept.
	T testing.TB
	// Acks returns how many replicas acknowledge a script, by its reply; nil: as the server says.
	Acks func(reply driver.Reply) int

	mu    sync.Mutex
	plan  []Fault
	calls int
	late  sync.WaitGroup
}

func (f *Driver) next() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if len(f.plan) == 0 {
		return Fault{}
	}
	head := f.plan[0]
	f.plan = f.plan[1:]
	return head
}

// Then sets the plan and counts anew.
func (f *Driver) Then(plan ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.calls = plan, 0
}

// Sent counts the commands since Then.
func (f *Driver) Sent() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// WaitLate waits for the commands executed late.
func (f *Driver) WaitLate() { f.late.Wait() }

func through[T any](ctx context.Context, f *Driver, call func(context.Context) (T, error)) (T, error) {
	var zero T
	switch fault := f.next(); {
	case fault.Err != nil:
		return zero, fault.Err
	case fault.Hang:
		<-ctx.Done()
		return zero, ctx.Err()
	case fault.Lose:
		if _, err := call(ctx); err != nil {
			f.T.Errorf("a command whose answer is to be lost failed: %v", err)
		}
		return zero, ErrCut
	case fault.Late > 0:
		f.late.Go(func() {
			time.Sleep(fault.Late) //nolint:forbidigo // fake time, in a bubble of testing/synctest
			_, _ = call(context.Background())
		})
		return zero, ErrCut
	case fault.Delay > 0:
		v, err := call(context.Background())
		select {
		case <-time.After(fault.Delay):
			return v, err
		case <-ctx.Done():
			return zero, ctx.Err()
		}
	default:
		return call(ctx)
	}
}

// SetNX implements driver.Driver.
func (f *Driver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	return through(ctx, f, func(ctx context.Context) (bool, error) { return f.Driver.SetNX(ctx, key, value, ttl) })
}

// Eval implements driver.Driver.
func (f *Driver) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	keys, args = append([]string(nil), keys...), append([]string(nil), args...)
	return through(ctx, f, func(ctx context.Context) (driver.Reply, error) { return f.Driver.Eval(ctx, s, keys, args) })
}

// EvalAcked implements driver.Driver.
func (f *Driver) EvalAcked(ctx context.Context, s *driver.Script, keys, args []string, replicas int,
	timeout time.Duration) (driver.Reply, int, error) {
	keys, args = append([]string(nil), keys...), append([]string(nil), args...)
	type result struct {
		reply driver.Reply
		acked int
	}
	r, err := through(ctx, f, func(ctx context.Context) (r result, err error) {
		if f.Acks != nil {
			r.reply, err = f.Driver.Eval(ctx, s, keys, args)
			r.acked = f.Acks(r.reply)
			return r, err
		}
		r.reply, r.acked, err = f.Driver.EvalAcked(ctx, s, keys, args, replicas, timeout)
		return r, err
	})
	return r.reply, r.acked, err
}

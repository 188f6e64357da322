package drivertest

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// flawedAcks is a sound driver with a flaw in EvalAcked.
type flawedAcks struct {
	driver.Driver
	flaw func(ctx context.Context, send func(context.Context) (ack, error), replicas int) (ack, error)
}

type ack struct {
	reply driver.Reply
	acked int
}

func (f flawedAcks) EvalAcked(ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration) (driver.Reply, int, error) {
	a, err := f.flaw(ctx, func(ctx context.Context) (a ack, err error) {
		a.reply, a.acked, err = f.Driver.EvalAcked(ctx, s, keys, args, replicas, timeout)
		return a, err
	}, replicas)
	return a.reply, a.acked, err
}

// The suite fails on drivers that report more than the WAIT behind a script did.
func TestFlawedAcknowledgements(t *testing.T) {
	t.Parallel()
	var list []suitetest.Mutant
	for _, f := range []struct {
		name   string
		flaw   func(context.Context, func(context.Context) (ack, error), int) (ack, error)
		caught []string
	}{
		{
			"takes what was asked for what was answered",
			func(ctx context.Context, send func(context.Context) (ack, error), replicas int) (ack, error) {
				a, err := send(ctx)
				a.acked = replicas
				return a, err
			},
			[]string{"a script is answered with its acknowledgements"},
		},
		{
			"takes a lost WAIT for one that nobody acknowledged",
			func(ctx context.Context, send func(context.Context) (ack, error), _ int) (ack, error) {
				a, err := send(ctx)
				if err != nil && !driver.NotExecuted(err) && ctx.Err() == nil {
					err = nil
				}
				return a, err
			},
			[]string{"a lost acknowledgement leaves the outcome unknown"},
		},
		{
			"sends a script again whose WAIT was lost",
			func(ctx context.Context, send func(context.Context) (ack, error), _ int) (ack, error) {
				return again(ctx, func() (ack, error) { return send(ctx) })
			},
			[]string{"a script with a WAIT is sent once", "a lost acknowledgement leaves the outcome unknown"},
		},
		{
			"takes the WAIT's outcome for the script's",
			func(ctx context.Context, send func(context.Context) (ack, error), _ int) (ack, error) {
				a, err := send(ctx)
				return a, driver.NotSent(err)
			},
			[]string{"a script with a WAIT is sent once", "a lost acknowledgement leaves the outcome unknown", "a WAIT obeys its context"},
		},
		{
			"hangs on in a WAIT",
			func(ctx context.Context, send func(context.Context) (ack, error), _ int) (ack, error) {
				return send(context.WithoutCancel(ctx))
			},
			[]string{"a WAIT obeys its context"},
		},
	} {
		flawed := Harness{Dial: func(tb testing.TB, target Target) (driver.Driver, error) {
			d, err := dial(tb, target)
			return flawedAcks{d, f.flaw}, err
		}}
		list = append(list, suitetest.Mutant{Name: f.name, Flawed: flawed.suite(), Caught: f.caught})
	}
	suitetest.Catch(t, list)
}

package main

import "context"

var processFaults = []fault{
	{kind: "process killed", brief: true, at: anywhere, do: func(_ context.Context, d *disturber) error {
		return d.replace(d.random.IntN(processes))
	}},
	{kind: "process frozen", brief: true, at: anywhere, do: func(ctx context.Context, d *disturber) error {
		p := d.process(d.random.IntN(processes))
		if err := p.freeze(); err != nil {
			return err
		}
		d.wait(ctx)
		return p.thaw()
	}},
	{kind: "goroutines starved", brief: true, at: anywhere, do: func(ctx context.Context, d *disturber) error {
		lasting := d.lasting() / 2
		d.process(d.random.IntN(processes)).trouble(starving, lasting)
		pause(ctx, lasting)
		return nil
	}},
	{kind: "waiter killed at its wake-up", brief: true, at: anywhere, do: func(ctx context.Context, d *disturber) error {
		i := d.random.IntN(processes)
		if !d.process(i).doom(ctx, minTTL) {
			return errNothing
		}
		return d.replace(i)
	}},
	{kind: "waiter frozen at its wake-up", brief: true, at: anywhere, do: func(ctx context.Context, d *disturber) error {
		p := d.process(d.random.IntN(processes))
		p.trouble(halting, minTTL)
		pause(ctx, minTTL)
		d.wait(ctx)
		return p.thaw()
	}},
	impatientCallers,
	blockedLog,
}

var (
	impatientCallers = fault{kind: "impatient callers", brief: true, at: anywhere, do: troubling(hurrying)}
	blockedLog       = fault{kind: "log blocked", brief: true, at: anywhere, do: troubling(clogging)}
)

// troubling returns a fault caused by the clients of a process.
func troubling(which string) func(context.Context, *disturber) error {
	return func(ctx context.Context, d *disturber) error {
		lasting := d.lasting()
		i := d.random.IntN(processes)
		if d.trouble != nil {
			i = troubleProcess
		}
		d.process(i).trouble(which, lasting)
		pause(ctx, lasting)
		return nil
	}
}

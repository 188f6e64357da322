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
		d.process(d.random.IntN(processes)).starve(lasting)
		pause(ctx, lasting)
		return nil
	}},
}

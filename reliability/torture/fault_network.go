package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
)

var networkFaults = []fault{
	command("reply dropped", faultproxy.DropReply),
	command("cut before the request", faultproxy.CutBefore),
	command("cut before the reply", faultproxy.Cut),
	command("cut within the reply", faultproxy.CutWithin),
	command("request stalled", faultproxy.StallRequest),
	command("reply stalled", faultproxy.Stall),
	{kind: "connections cut", brief: true, at: proxied, do: onProxy(func(_ context.Context, _ *disturber, p *faultproxy.Proxy) error {
		p.CutAll()
		return nil
	})},
	{kind: "connections reset", brief: true, at: proxied, do: onProxy(func(_ context.Context, _ *disturber, p *faultproxy.Proxy) error {
		p.ResetAll()
		return nil
	})},
	{kind: "connections half-open", at: proxied, do: onProxy(func(ctx context.Context, d *disturber, p *faultproxy.Proxy) error {
		p.HalfOpen()
		d.wait(ctx)
		p.ResetAll()
		return nil
	})},
	{kind: "messages lost", at: proxied, do: onProxy(func(ctx context.Context, d *disturber, p *faultproxy.Proxy) error {
		return d.filter(ctx, p, -1)
	})},
	{kind: "messages late", at: proxied, do: onProxy(func(ctx context.Context, d *disturber, p *faultproxy.Proxy) error {
		return d.filter(ctx, p, 3*time.Second)
	})},
	{kind: "network frozen", at: proxied, do: onProxy(func(ctx context.Context, d *disturber, p *faultproxy.Proxy) error {
		p.Freeze()
		defer p.Thaw()
		d.wait(ctx)
		return nil
	})},
	{kind: "connections refused", at: proxied, do: onProxy(func(ctx context.Context, d *disturber, p *faultproxy.Proxy) error {
		p.Refuse()
		p.CutAll()
		d.wait(ctx)
		return p.Accept()
	})},
	{kind: "latency", at: proxied, do: onProxy(func(ctx context.Context, d *disturber, p *faultproxy.Proxy) error {
		by := time.Millisecond + time.Duration(d.random.Int64N(int64(200*time.Millisecond)))
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Any, Every: true, Fault: faultproxy.Delay, By: by})
		defer trap.Release()
		d.wait(ctx)
		return nil
	})},
	{kind: "slow bytes", at: proxied, do: onProxy(func(ctx context.Context, d *disturber, p *faultproxy.Proxy) error {
		p.Slow(100*time.Microsecond + time.Duration(d.random.Int64N(int64(20*time.Millisecond))))
		defer p.Slow(0)
		d.wait(ctx)
		return nil
	})},
}

// filter holds back the messages of Pub/Sub, while commands work.
func (d *disturber) filter(ctx context.Context, p *faultproxy.Proxy, by time.Duration) error {
	p.Filter(faultproxy.Messages(by))
	defer p.Filter(nil)
	d.wait(ctx)
	return nil
}

// onProxy returns a fault of one proxy.
func onProxy(do func(context.Context, *disturber, *faultproxy.Proxy) error) func(context.Context, *disturber) error {
	return func(ctx context.Context, d *disturber) error {
		return do(ctx, d, d.deployment.proxies[d.random.IntN(len(d.deployment.proxies))])
	}
}

// command disturbs one of the next commands, whichever it is.
func command(kind string, f faultproxy.Fault) fault {
	do := func(ctx context.Context, d *disturber, p *faultproxy.Proxy) error {
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Any, Nth: 1 + d.random.IntN(20), Fault: f})
		defer trap.Release()
		limit, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		select {
		case <-trap.Hit():
		case <-limit.Done():
			return errNothing
		}
		switch f {
		case faultproxy.Stall, faultproxy.StallRequest:
			d.wait(ctx)
		case faultproxy.DropReply:
			// The connection stays silent. A client with one connection for all commands notices
			// only when it is closed.
			d.wait(ctx)
			p.CutAll()
		}
		return nil
	}
	brief := f == faultproxy.Cut || f == faultproxy.CutWithin || f == faultproxy.CutBefore
	return fault{kind: kind, brief: brief, at: proxied, do: onProxy(do)}
}

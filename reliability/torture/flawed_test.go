package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/reliability/history"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// Flawed locks, with common mistakes.
func init() {
	strategies["flawed: deletes without comparing"] = flawedStrategy(func(ttl time.Duration) time.Duration { return ttl })
	strategies["flawed: ignores that leases end"] = flawedStrategy(func(time.Duration) time.Duration { return time.Hour })
}

func flawedStrategy(believes func(time.Duration) time.Duration) strategy {
	return strategy{flawed: true, Strategy: workload.Strategy{Model: history.Exclusive, Open: func(d driver.Driver) (locker.Locker, error) {
		return flawed{d, believes}, nil
	}}}
}

// flawed sets a key and deletes it, even if another holder has it by then.
type flawed struct {
	driver.Driver
	believes func(time.Duration) time.Duration
}

// Acquire implements locker.Locker.
func (f flawed) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	g := lease.HoldInfo{Name: req.Name, Owner: "somebody", Token: lease.NewToken(), TTL: req.TTL, Deadline: time.Now().Add(f.believes(req.TTL))}
	set, err := f.SetNX(ctx, req.Name, g.Token, req.TTL)
	if err != nil {
		return nil, err
	}
	if !set {
		return nil, &locker.ContentionError{Name: req.Name}
	}
	return locker.NewLock(ctx, g, flawedLease{f, req.Name}), nil
}

type flawedLease struct {
	flawed
	name string
}

var deletes = driver.NewScript("return redis.call('DEL', KEYS[1])")

// Do implements lease.Lease.
func (l flawedLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind != lease.OpRelease {
		return lease.Result{}, errors.ErrUnsupported
	}
	_, err := l.Eval(ctx, deletes, []string{l.name}, nil)
	return lease.Result{}, err
}

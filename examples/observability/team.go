package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	collectorTimeout = 5 * time.Second
	betweenShifts    = 2 * time.Second
)

// team are the workers.
type team []*worker

// shift is the work of all: contended orders, and a report written by one.
func (t team) shift(ctx context.Context, rounds int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	errs := make([]error, len(t))
	var wg sync.WaitGroup
	for i, w := range t {
		wg.Go(func() {
			for round := 1; round <= rounds && errs[i] == nil; round++ {
				if errs[i] = w.order(ctx, round); errs[i] == nil {
					errs[i] = pause(ctx, resting)
				}
			}
			if errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", w.name, errs[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return t[0].report(ctx, t[1:])
}

// goOn works shift by shift for as long as it was asked to. To be interrupted is no error.
func (t team) goOn(ctx context.Context, s settings) error {
	ctx, cancel := context.WithTimeout(ctx, s.serve)
	defer cancel()
	for ctx.Err() == nil {
		if err := t.shift(ctx, s.rounds); err != nil && ctx.Err() == nil {
			return err
		}
		_ = pause(ctx, betweenShifts) // ctx may end
	}
	return nil
}

// flush sends pending telemetry to the collector.
func (t team) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, collectorTimeout)
	defer cancel()
	for _, w := range t {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// shutdown sends pending telemetry, even if ctx has ended.
func (t team) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectorTimeout)
	defer cancel()
	var errs []error
	for _, w := range t {
		errs = append(errs, w.shutdown(ctx))
	}
	return errors.Join(errs...)
}

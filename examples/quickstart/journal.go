package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// journal prints what happens, a line at a time.
type journal struct {
	start time.Time

	mu   sync.Mutex
	out  io.Writer
	most time.Duration
}

func (j *journal) printf(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = fmt.Fprintf(j.out, format, args...)
}

// linef prints what a worker did, and when.
func (j *journal) linef(worker, what, format string, args ...any) {
	j.printf("%7.3fs  %-9s %-7s %s\n", time.Since(j.start).Seconds(), worker, what, fmt.Sprintf(format, args...))
}

// waited notes a wait and rounds it for printing.
func (j *journal) waited(d time.Duration) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.most = max(j.most, d)
	return d.Round(100 * time.Microsecond)
}

func (j *journal) longest() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.most
}

// trace tells of one acquisition, each holder that is waited for once.
func (j *journal) trace(worker string) *locker.Trace {
	var last string
	return &locker.Trace{
		Waiting: func(_ context.Context, info locker.WaitingInfo) {
			var held *locker.ContentionError
			if !errors.As(info.Err, &held) {
				return
			}
			if holder := held.Owner + ", " + held.Note; holder != last {
				last = holder
				j.linef(worker, "waits", "for %s", holder)
			}
		},
		Lost: func(_ context.Context, info locker.LostInfo) { j.linef(worker, "LOST", "%v", info.Err) },
	}
}

package locker

import (
	"context"
	"runtime"
	"sync"

	"github.com/holdfast-go/holdfast/locker/internal/gather"
)

// together calls f for 0 to n-1, all at the same time, and returns when all have returned. Their
// commands to one server travel together. If one panics or calls runtime.Goexit, so does together.
func together(ctx context.Context, n int, f func(ctx context.Context, i int)) {
	if n == 1 {
		f(ctx, 0)
		return
	}
	gathering := gather.NewGroup(n)
	ends := make([]end, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			joined, leave := gathering.Join(ctx)
			defer leave()
			ends[i].of(func() { f(joined, i) })
		})
	}
	all.Wait()
	for _, e := range ends {
		e.repeat()
	}
}

// end is how a function ended.
type end struct {
	returned bool
	panicked any // nil: it called runtime.Goexit
}

// of calls f, and records how it ends.
func (e *end) of(f func()) {
	defer func() {
		if !e.returned {
			e.panicked = recover()
		}
	}()
	f()
	e.returned = true
}

// repeat ends its caller's function in the same way.
func (e end) repeat() {
	switch {
	case e.returned:
	case e.panicked != nil:
		panic(e.panicked)
	default:
		runtime.Goexit()
	}
}

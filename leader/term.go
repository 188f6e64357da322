package leader

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// term is one term of a Candidate.
type term struct {
	lock   *locker.Lock
	number int64
	ctx    context.Context // Lead's
	cancel context.CancelFunc

	ended    atomic.Int32  // who ended it: nobody, Lead by returning, or Run by no longer waiting
	returned chan struct{} // closed once Lead has returned, if Run still waits

	// How Lead ended; set before returned is closed.
	err      error
	ctxErr   bool        // err only reports the end of its ctx
	panicked *panicError // nil: it did not panic
	exited   bool        // it called runtime.Goexit
}

// The values of term.ended.
const (
	byNobody = iota
	byLead
	byRun
)

func newTerm(ctx context.Context, lock *locker.Lock) *term {
	t := &term{lock: lock, number: lock.Fence(), returned: make(chan struct{})}
	t.ctx, t.cancel = lock.Context(ctx)
	return t
}

// leads reports whether the term has not ended. It asks the lock too, which compares the clock with
// the Deadline: ctx may end a moment later.
func (t *term) leads() bool {
	return t.ended.Load() == byNobody && t.ctx.Err() == nil && t.lock.Err() == nil
}

// lead runs f, and then calls done. If Run no longer waits, lead releases the lock, and a panic
// continues in this goroutine.
func (t *term) lead(f func(context.Context, int64) error, done func()) {
	normal := false
	defer func() {
		if !normal {
			if v := recover(); v != nil {
				t.panicked = &panicError{v, debug.Stack()}
			} else {
				t.exited = true
			}
		}
		t.ctxErr = isContextErr(t.ctx, t.err)
		waited := t.ended.CompareAndSwap(byNobody, byLead)
		t.cancel()
		if waited {
			done()
			close(t.returned)
			return
		}
		_ = t.lock.Release(context.Background())
		done()
		if t.panicked != nil {
			panic(t.panicked)
		}
	}()
	t.err = f(t.ctx, t.number)
	normal = true
}

// wait waits until Lead returns. It returns false if Lead has not returned when timeout has passed
// since its ctx ended; the lock is no longer renewed then.
func (t *term) wait(timeout time.Duration) bool {
	select {
	case <-t.returned:
		return true
	case <-t.ctx.Done():
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-t.returned:
		return true
	case <-timer.C:
	}
	if !t.ended.CompareAndSwap(byNobody, byRun) {
		<-t.returned
		return true
	}
	t.lock.Hold().MarkLost(ErrLeadRunning)
	return false
}

// panicError carries a panic of Lead into another goroutine.
type panicError struct {
	value any
	stack []byte
}

// Error returns the value, and the stack where Lead panicked.
func (p *panicError) Error() string {
	return fmt.Sprintf("leader: Lead panicked: %v\n\n%s", p.value, p.stack)
}

// Unwrap returns the value if it is an error.
func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

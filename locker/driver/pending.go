package driver

import "sync"

// PendingError is the error of a call whose caller left before it returned. Whether the command was
// sent, and its effect, are not known yet: [PendingError.OnAnswer] reports them. A PendingError
// wraps the error of the caller's context, and has its text.
type PendingError struct {
	err error

	mu        sync.Mutex
	over      bool // the call has returned v and late
	v         any
	late      error
	callbacks []func(v any, err error)
}

// NewPendingError returns a PendingError over err, and the function to record the results of the
// call. answer must be called once.
func NewPendingError(err error) (pending *PendingError, answer func(v any, err error)) {
	pending = &PendingError{err: err}
	return pending, pending.answer
}

// Error implements error.
func (e *PendingError) Error() string { return e.err.Error() }

// Unwrap returns the error of the caller's context.
func (e *PendingError) Unwrap() error { return e.err }

// OnAnswer arranges for f to be called once, with the results of the call: for SetNX a bool, for
// Eval and EvalAcked a [Reply], each with its error. If the call has returned, OnAnswer calls f
// itself; otherwise the call's goroutine does. f must not block. If the call never returns, f is
// never called.
func (e *PendingError) OnAnswer(f func(v any, err error)) {
	e.mu.Lock()
	if !e.over {
		e.callbacks = append(e.callbacks, f)
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	f(e.v, e.late)
}

// answer records the results of the call, and passes them to the callbacks.
func (e *PendingError) answer(v any, err error) {
	e.mu.Lock()
	e.over, e.v, e.late = true, v, err
	callbacks := e.callbacks
	e.callbacks = nil
	e.mu.Unlock()
	for _, f := range callbacks {
		f(v, err)
	}
}

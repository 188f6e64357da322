package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// signals receives the signals to pass on.
type signals struct{ c chan os.Signal }

func catchSignals() *signals {
	s := &signals{make(chan os.Signal, 16)}
	for _, sig := range passedOn {
		if !signal.Ignored(sig) { // such as SIGHUP by nohup: the command is to ignore it too
			signal.Notify(s.c, sig)
		}
	}
	// A closed standard error must not end the program before it has released the lock.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return s
}

func (s *signals) stop() { signal.Stop(s.c) }

// interrupting returns a copy of ctx that ends at a signal, and a function to end it. The function
// returns the signal, or nil if there was none.
func (s *signals) interrupting(ctx context.Context) (context.Context, func() os.Signal) {
	ctx, cancel := context.WithCancel(ctx)
	got := make(chan os.Signal)
	go func() {
		var sig os.Signal
		select {
		case sig = <-s.c:
			cancel()
		case <-ctx.Done():
		}
		got <- sig
	}()
	return ctx, func() os.Signal { cancel(); return <-got }
}

// signalError is the cause of a run ended by a signal.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string { return e.sig.String() }

// untilSignal returns a copy of ctx, ended by SIGINT, SIGTERM or SIGHUP with a signalError as its
// cause.
func untilSignal(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case sig := <-signals:
			signal.Stop(signals) // another one ends the program without clean-up
			cancel(&signalError{sig})
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// runError returns the error of a run: its signal's if one ended it, else err.
func runError(ctx context.Context, err error) error {
	if by, ok := errors.AsType[*signalError](context.Cause(ctx)); ok {
		return statusOnly(statusSignal + signalNumber(by.sig))
	}
	return withStatus(err)
}

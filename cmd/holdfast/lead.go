package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

func newLeader(o *options) *cobra.Command {
	var f commandFlags
	cmd := &cobra.Command{
		Use:   "leader NAME [flags] -- COMMAND [ARGS...]",
		Short: "Run a command on one of several hosts, as their leader",
		Long: `Run a command on one of several hosts: campaign for the name, and run the command while this
host leads. If the lead is lost, the command is ended as by run, and holdfast campaigns again, also
through an outage. When the command ends by itself, holdfast steps down and ends with its status.

The command gets HOLDFAST_NAME, and the number of the term as HOLDFAST_FENCE, which increases from
term to term. Exit statuses and signals are those of run.`,
		Example: `  holdfast leader billing -- /usr/local/bin/billing`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := f.check(cmd, args)
			if err != nil {
				return err
			}
			return f.lead(cmd.Context(), o, name, argv)
		},
		ValidArgsFunction: o.completeName,
	}
	f.register(cmd)
	_ = cmd.Flags().MarkHidden("on-lost") // without the lead the command must not go on
	_ = cmd.Flags().MarkHidden("connect-timeout")
	return cmd
}

func (f *commandFlags) lead(ctx context.Context, o *options, name string, argv []string) error {
	if f.onLost != "kill" {
		return errors.New("leader ends its command when the lead is lost: --on-lost is not for it")
	}
	path, err := lookPath(argv[0])
	if err != nil {
		return err
	}
	o.connectTimeout = f.connect
	l, c, err := o.open(false, f.noteSince)
	if err != nil {
		return err
	}
	defer c.close()

	all, forwarded := catchSignals(), &signals{make(chan os.Signal, 16)}
	defer all.stop()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var leads, stopping atomic.Bool
	received := make(chan os.Signal, 1) // the signal that ended the campaign
	go func() {
		for {
			select {
			case sig := <-all.c:
				stopping.Store(stopping.Load() || sig == os.Interrupt || sig == syscall.SIGTERM)
				if !leads.Load() {
					received <- sig
					stop()
					return
				}
				select {
				case forwarded.c <- sig: // it is the command's
				default:
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	err = leader.Run(reportOutage(ctx), l, leader.Config{
		Name: name, Note: f.note, TTL: f.ttl, StopTimeout: f.grace + answerTimeout,
		Lead: func(ctx context.Context, term int64) error {
			leads.Store(true)
			defer leads.Store(false)
			cause := func() error { return context.Cause(ctx) }
			status, lost, err := f.supervise(ctx.Done(), cause, forwarded, start{path, argv, environment(name, term)})
			if lost && !stopping.Load() {
				return context.Cause(ctx) // it campaigns again
			}
			return leader.Permanent(&statusError{status, err}) // also status 0: a failed release keeps it
		},
	})
	select {
	case sig := <-received:
		return statusOnly(statusSignal + signalNumber(sig))
	default:
	}
	if errors.Is(err, locker.ErrLost) {
		return &statusError{statusLost, err}
	}
	return withStatus(err)
}

// reportOutage returns a copy of ctx. Acquires with it report an outage on standard error: once,
// until a server answers again.
func reportOutage(ctx context.Context) context.Context {
	var failing atomic.Bool
	return locktrace.With(ctx, &locktrace.Trace{Attempt: func(_ context.Context, info locktrace.AttemptInfo) {
		switch {
		case info.AtNode || ctx.Err() != nil:
		case info.Err == nil || errors.Is(info.Err, locker.ErrNotAcquired) || !driver.Transient(info.Err):
			failing.Store(false)
		case !failing.Swap(true):
			warnf("%s; campaigning on", explain("leader", info.Err))
		}
	}})
}

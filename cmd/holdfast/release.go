package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func newRelease(o *options) *cobra.Command {
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "release --force NAME",
		Short: "End the hold of a lock, whoever has it",
		Long: `End the holds of a lock, whoever has them, and wake its waiters. It prints whose they were.

A holder that is holdfast run or holdfast leader is told, and ends its command at once. Any other
learns of it at its next renewal, within a third of its TTL, and may go on working until then: stop
it first. At a terminal, release asks first, unless --force is given.

Exit status: 1 if nobody holds the lock, or the question is not answered with yes.`,
		Args: takes(1, 1, "one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, c, err := o.openInspector()
			if err != nil {
				return err
			}
			defer c.close()
			var holds locker.Locker = l
			if !force {
				if holds, err = confirm(cmd.Context(), l, args[0]); err != nil {
					return err
				}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerTimeout)
			defer cancel()
			state, err := locker.Break(ctx, holds, args[0])
			if errors.Is(err, locker.ErrNotHeld) && !force {
				if now, errNow := locker.Inspect(ctx, l, args[0]); errNow == nil && now.Held {
					err = fmt.Errorf("%s: not released: another hold followed the one that was shown", printable(args[0]))
					return &statusError{statusFailed, err}
				}
			}
			if errors.Is(err, locker.ErrNotHeld) {
				return &statusError{statusFree, err}
			}
			c.announceBroken(ctx, o.prefix+args[0]) // after an error too: some holds may have ended
			if err != nil {
				return withStatus(err)
			}
			return withStatus(printEnded(stdout, args[0], l.withStrategy(state), asJSON))
		},
		ValidArgsFunction: o.completeName,
	}
	cmd.Flags().BoolVar(&force, "force", false, "do not ask")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// shownHolds are the holds shown to the user. locker.Break ends these, and no later ones.
type shownHolds struct {
	locker.Locker

	state locker.State
	end   func(context.Context) error
}

// FindHolds implements breaker.
func (s shownHolds) FindHolds(context.Context, string) (locker.State, func(context.Context) error, error) { //nolint:unparam // breaker has the error
	return s.state, s.end, nil
}

// confirm asks whether the holds of a lock are to end, and returns an error unless they are.
func confirm(ctx context.Context, l *inspector, name string) (locker.Locker, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil, errors.New("release ends the hold of another: give --force")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	strategy, _ := lease.Find[breaker](l.Locker)
	state, end, err := strategy.FindHolds(ctx, name)
	if err != nil {
		return nil, withStatus(&locker.OpError{Op: "break", Name: name, Err: err})
	}
	if end == nil {
		return nil, &statusError{statusFree, fmt.Errorf("%s: %w", printable(name), locker.ErrNotHeld)}
	}
	_, _ = fmt.Fprintf(stderr, "%s  %s\nEnd this hold? [y/N] ", printable(name), describe(l.withStrategy(state)))
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return nil, statusOnly(statusFree)
	}
	return shownHolds{l, state, end}, nil
}

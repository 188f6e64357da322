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
			if !force {
				if err := confirm(cmd.Context(), l, args[0]); err != nil {
					return err
				}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerTimeout)
			defer cancel()
			state, err := locker.Break(ctx, l, args[0])
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

// confirm asks whether the holds of a lock are to end, and returns an error unless they are.
func confirm(ctx context.Context, l *inspector, name string) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return errors.New("release ends the hold of another: give --force")
	}
	inspect := func() (locker.State, error) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		return locker.Inspect(ctx, l, name)
	}
	state, err := inspect()
	if err != nil {
		return withStatus(err)
	}
	if !state.Held {
		return &statusError{statusFree, fmt.Errorf("%s: %w", printable(name), locker.ErrNotHeld)}
	}
	_, _ = fmt.Fprintf(stderr, "%s  %s\nEnd this hold? [y/N] ", printable(name), describe(l.withStrategy(state)))
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return statusOnly(statusFree)
	}
	now, err := inspect()
	if err == nil && now.Held && otherHold(now, state) { // the answer may have taken hours
		err = &statusError{statusFailed, fmt.Errorf("%s: not released: another hold followed the one that was shown", printable(name))}
	}
	return withStatus(err)
}

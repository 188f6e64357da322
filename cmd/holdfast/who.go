package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/locker"
)

func newWho(o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "who NAME",
		Short: "Show who holds a lock",
		Long: `Show who holds a lock, how, for how long unless renewed, the number of processes that wait,
its strategy, the holder's note, and its fencing token. The strategy is found by what the key holds,
unless --strategy is given. run and leader note user, host, process, since when, and the command.

Exit status: 0 if it is held, 1 if it is free; others as of run.`,
		Args: takes(1, 1, "one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, c, err := o.openInspector()
			if err != nil {
				return err
			}
			defer c.close()
			ctx, cancel := context.WithTimeout(cmd.Context(), answerTimeout)
			defer cancel()
			state, err := locker.Inspect(ctx, l, args[0])
			if err != nil {
				return withStatus(err)
			}
			if err := printState(stdout, args[0], l.withStrategy(state), asJSON); err != nil {
				return withStatus(err)
			}
			if !state.Held {
				return statusOnly(statusFree)
			}
			return nil
		},
		ValidArgsFunction: o.completeName,
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

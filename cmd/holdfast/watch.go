package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/locker"
)

func newWatch(o *options) *cobra.Command {
	var asJSON bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Show who holds a lock, now and after each change",
		Long: `Show who holds a lock, now and after each change, until it is interrupted.

An outage is reported on standard error, and waited out.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval <= 0 {
				return fmt.Errorf("--interval %s: want more than 0", interval)
			}
			l, c, err := o.asker()
			if err != nil {
				return err
			}
			defer c.close()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			last := error(nil)
			for state, err := range locker.Watch(ctx, l, args[0], interval) {
				if last = err; err != nil {
					warnf("%s", trimPrefix(err))
					continue
				}
				if !asJSON {
					_, _ = fmt.Fprint(os.Stdout, time.Now().Format("15:04:05  "))
				}
				if err := printState(os.Stdout, args[0], state, asJSON); err != nil {
					return withStatus(err)
				}
			}
			if ctx.Err() != nil {
				return nil
			}
			return statusOnly(operationStatus(last)) // it was reported, and another attempt would only repeat it
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "how often to ask the server")
	return cmd
}

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

//go:embed lua/scan.lua
var scanSource string

var scanScript = driver.NewScript(strategySource + scanSource)

func newList(o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List the locks that are held",
		Long: `List the locks that are held, of all strategies. PATTERN is that of SCAN, such as 'invoice:*'.

It scans all keys of the server in small steps, and never blocks it. A lock that is acquired or
released meanwhile may be missing or listed twice. It needs a single server, or the master of
Sentinels.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.connect()
			if err != nil {
				return err
			}
			defer c.close()
			targets, err := o.targets()
			if err != nil {
				return err
			}
			if len(targets) != 1 || targets[0].kind == cluster {
				return errors.New("ls scans one server: name a node of the quorum or of the Cluster by --url")
			}
			pattern := "*"
			if len(args) == 1 {
				pattern = args[0]
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return withStatus(o.list(ctx, c, pattern, asJSON))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (o *options) list(ctx context.Context, c connection, pattern string, asJSON bool) error {
	d, err := newDetector(c[0].drv, o.prefix)
	if err != nil {
		return err
	}
	for cursor := ""; cursor != "0"; {
		if cursor == "" {
			cursor = "0"
		}
		found, err := scan(ctx, c[0].drv, cursor, literally.Replace(o.prefix)+pattern)
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		for i := 1; i+1 < len(found); i += 2 {
			name, ours := strings.CutPrefix(found[i], o.prefix)
			if !ours || (locker.Request{Name: name}).Validate() != nil {
				continue
			}
			strategy, err := strategyFound(found[i], found[i+1])
			if err != nil {
				return err
			}
			if err := listOne(ctx, d.strategies[strategy], name, asJSON); err != nil {
				return err
			}
		}
		cursor = found[0]
	}
	return nil
}

// literally makes of a text the pattern that matches it alone.
var literally = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// scan makes one step of a scan.
func scan(ctx context.Context, drv driver.Driver, cursor, pattern string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reply, err := drv.Eval(ctx, scanScript, nil, []string{cursor, pattern})
	if err != nil {
		return nil, err
	}
	var all []string
	for i := range reply.Len() {
		text, err := reply.Text(i)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return nil, errors.New("the reply is empty")
	}
	return all, nil
}

// listOne prints a lock if the strategy finds it held.
func listOne(ctx context.Context, l locker.Locker, name string, asJSON bool) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	state, err := locker.Inspect(ctx, l, name)
	switch {
	case noLock(err):
		return nil
	case err != nil:
		return err
	case state.Held:
		return printState(os.Stdout, name, state, asJSON)
	}
	return nil // no longer
}

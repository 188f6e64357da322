package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
)

// completeNames is the largest number of completions.
const completeNames = 100

// completeName completes the name of a held lock for a shell. After an error it completes nothing.
func (o *options) completeName(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	found := make(chan []string, 1)
	go func() { found <- o.namesWith(ctx, cmd, begin) }()
	select {
	case names := <-found:
		return names, cobra.ShellCompDirectiveNoFileComp
	case <-time.After(2 * completeTimeout): // a client may connect for longer
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// namesWith returns names with a beginning, of keys that may hold locks, at the first node of a
// quorum. Its connections end with the program.
func (o *options) namesWith(ctx context.Context, cmd *cobra.Command, begin string) (names []string) {
	if o.readEnvironment(cmd.Flags()) != nil {
		return nil
	}
	all, err := o.credentials()
	if err != nil {
		return nil
	}
	c, err := o.connectTo(all[:1])
	if err != nil {
		return nil
	}
	if all[0].kind == cluster {
		if all, err = all[0].masters(ctx, c[0].drv); err != nil {
			return nil
		}
		if c, err = o.connectTo(all); err != nil {
			return nil
		}
	}
	enough := errors.New("enough names")
	for _, s := range c {
		err := scanAll(ctx, s.drv, o.prefix, patternEscaper.Replace(begin)+"*", false, func(name, _ string) error {
			if printable(name) == name {
				names = append(names, name)
			}
			if len(names) == completeNames {
				return enough
			}
			return nil
		}, func() {})
		if err != nil {
			break
		}
	}
	return names
}

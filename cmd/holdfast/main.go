// Command holdfast takes locks at a shell: it runs a command under a lock, and shows who holds one.
// See docs/cli.md.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
)

func main() {
	logging.Disable() // go-redis would log to standard error
	os.Exit(execute(os.Args[1:]))
}

// execute runs the command line and returns the exit status.
func execute(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	status := statusOf(err)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, text(err))
		if status == statusUsage {
			fmt.Fprintln(os.Stderr, "See: holdfast help")
		}
	}
	return status
}

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:     "holdfast",
		Version: version(),
		Short:   "Distributed locks on Redis and Valkey, at a shell",
		Long: `Distributed locks on Redis and Valkey, at a shell.

The server is named by --url or HOLDFAST_URL:

  redis://[user@]host[:port][/db]        one server; rediss:// with TLS
  unix:///path/to/socket[?db=N]          one server, over a socket
  redis+cluster://host[:port],host...    a Cluster; rediss+cluster:// with TLS
  redis+sentinel://host[:port],.../name  the master that Sentinels know by that name

A quorum of independent servers is named by --nodes or HOLDFAST_NODES, with commas.
The password comes from HOLDFAST_PASSWORD, from the file --password-file, or from the URL in
HOLDFAST_URL: never from an argument, which every user of the machine can read.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return o.readEnvironment(cmd.Flags()) },
	}
	o.register(root)
	root.AddCommand(newRun(o), newLeader(o), newWho(o), newList(o), newWatch(o), newRelease(o),
		newCheck(o), newBench(o), newConformance(o))
	return root
}

// version returns the version of the module that the program was built from: "(devel)" in a clone.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

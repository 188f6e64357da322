// Command holdfast is for locks at a shell, and for cron on hosts without Go code:
//
//	holdfast run NAME -- COMMAND       runs a command under a lock
//	holdfast leader NAME -- COMMAND    runs a command on one of several hosts
//	holdfast who NAME                  shows who holds a lock
//	holdfast watch NAME                shows it now and after each change
//	holdfast ls [PATTERN]              lists the locks that are held
//	holdfast top [PATTERN]             shows them again and again, those with most waiters first
//	holdfast release --force NAME      ends the hold of another
//	holdfast check                     checks what locks assume of the server
//	holdfast bench                     measures the server
//	holdfast conformance               runs the tests of the contracts against the server
//
// The server is named by --url or HOLDFAST_URL. [docs/cli.md] describes each command, and the exit
// statuses.
//
// [docs/cli.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/cli.md
package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
)

func main() {
	logging.Disable() // go-redis would log to standard error
	status := execute(os.Args[1:])
	if status == statusInterrupted {
		interruptGroup()
		status = statusSignal + int(syscall.SIGINT)
	}
	os.Exit(status)
}

// execute runs the command line and returns the exit status.
func execute(args []string) int {
	o := &options{}
	root := newRoot(o)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	status := statusOf(err)
	if err != nil && err.Error() != "" {
		lines := errorText(cmd.Name(), err) + "\n"
		if status == statusUsage {
			lines += seeHelp(cmd) + "\n"
		} else if advice := hint(context.Background(), err, o.servers...); advice != "" {
			lines += advice + "\n"
		}
		_, _ = io.WriteString(stderr, lines)
	}
	return status
}

// seeHelp returns the usage of a command, and its help command.
func seeHelp(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "See: holdfast help"
	}
	return "Usage: " + cmd.UseLine() + "\nSee: holdfast help " + cmd.Name()
}

func newRoot(o *options) *cobra.Command {
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
	root.AddCommand(newRun(o), newLeader(o), newWho(o), newList(o), newTop(o), newWatch(o), newRelease(o),
		newCheck(o), newBench(o), newConformance(o))
	return root
}

// version returns the version of the program's module: "(devel)" in a clone.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

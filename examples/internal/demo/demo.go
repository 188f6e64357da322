// Package demo is what the examples of one strategy each have in common: a flag that names a server, the clients, and an exit
// status.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/holdfast-go/holdfast/examples/internal/clients"
)

// Main connects the three clients to the server that the flag -redis names, or to an embedded one, and runs run. If that
// fails, the program ends with status 1 and one line that begins with name.
func Main(name string, run func(ctx context.Context, all clients.All) error) {
	url := flag.String("redis", "", "`URL` of a server, redis://[user:password@]host:port[/db]; empty: an embedded one")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: takes no arguments; see -help\n", name)
		os.Exit(2)
	}
	if err := connected(*url, run); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

func connected(url string, run func(context.Context, clients.All) error) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server, err := clients.Open(url)
	if err != nil {
		return err
	}
	defer server.Close()
	all, err := clients.Dial(ctx, server)
	defer func() { err = errors.Join(err, all.Close()) }()
	if err != nil {
		return fmt.Errorf("cannot use %s: %w", server, err)
	}
	return run(ctx, all)
}

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
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/examples/internal/clients"
)

// Main connects the three clients to the server that the flag -redis names, or to an embedded one, and runs run. If that
// fails, the program ends with status 1 and one line that begins with name.
func Main(name string, run func(ctx context.Context, all clients.All) error) {
	url := flag.String("redis", "", "`URL` of a server, redis://[user:password@]host:port[/db]; empty: an embedded one")
	start(name, func(ctx context.Context) error { return connected(ctx, *url, run) })
}

// Nodes is Main for an example that needs several servers: those whose URLs the flag -redis lists, or n embedded ones. Each
// is reached by one client, and the clients take turns.
func Nodes(name string, n int, run func(ctx context.Context, nodes clients.Nodes) error) {
	urls := flag.String("redis", "", "`URLs` of the servers, with commas, redis://[user:password@]host:port[/db]; empty: embedded ones")
	start(name, func(ctx context.Context) (err error) {
		addresses := make([]string, n)
		if *urls != "" {
			if addresses = strings.Split(*urls, ","); slices.Contains(addresses, "") {
				return fmt.Errorf("-redis %q has an empty URL", *urls)
			}
		}
		nodes, err := clients.DialNodes(ctx, addresses)
		defer func() { err = errors.Join(err, nodes.Close()) }()
		if err != nil {
			return err
		}
		return run(ctx, nodes)
	})
}

// start runs a program whose flags are declared.
func start(name string, run func(context.Context) error) {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: takes no arguments; see -help\n", name)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

func connected(ctx context.Context, url string, run func(context.Context, clients.All) error) (err error) {
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

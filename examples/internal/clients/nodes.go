package clients

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9/logging"
)

// Node is one of several servers, and a client of it.
type Node struct {
	*Client
	server  *Server
	stopped bool
}

// Nodes are servers that share nothing.
type Nodes []*Node

// DialNodes connects one client to each of the addresses; an empty one is an embedded server. What it returns is to be closed
// also where one of them fails.
func DialNodes(ctx context.Context, addresses []string) (nodes Nodes, err error) {
	logging.Disable()
	for i, address := range addresses {
		s, err := Open(address)
		if err != nil {
			return nodes, err
		}
		n := &Node{server: s}
		nodes = append(nodes, n)
		if n.Client, err = dialers[i%len(dialers)](ctx, s); err != nil {
			return nodes, fmt.Errorf("cannot use %s: %w", s, err)
		}
	}
	return nodes, nil
}

// Stop takes the node away: an embedded server is stopped; of a real one, which is not ours, the driver is closed.
func (n *Node) Stop() error {
	n.stopped = true
	if n.server.embedded == nil {
		return n.Driver.Close()
	}
	n.server.Close()
	return nil
}

// Close closes the drivers, their clients and the embedded servers.
func (all Nodes) Close() error {
	var errs []error
	for _, n := range all {
		if n.Client != nil {
			if n.Driver != nil && (!n.stopped || n.server.embedded != nil) {
				errs = append(errs, n.Driver.Close())
			}
			errs = append(errs, n.closer())
		}
		n.server.Close()
	}
	return errors.Join(errs...)
}

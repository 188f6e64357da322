//go:build !unix

package localport

import "net"

// Hold does nothing here: the port may be taken by others.
func Hold(int) (*Held, error) { return &Held{drop: func() error { return nil }}, nil }

// shutdown does nothing: processes get no copies here.
func shutdown(net.Listener) {}

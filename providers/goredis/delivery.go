package goredis

import (
	"errors"
	"sync/atomic"
)

// delivery records whether a command has left, for a caller that gives up meanwhile. Only one of
// the two happens: the client writes the command, or its caller abandons it.
type delivery struct{ state atomic.Uint32 }

const (
	waiting = iota // for a connection: in the pool's queue, or until one is dialed and logged in
	sent
	abandoned
)

// sent reports whether the command may have left.
func (d *delivery) sent() bool { return d.state.Load() == sent }

// abandon reports whether the command has not left; then it never will.
func (d *delivery) abandon() bool {
	return d.state.CompareAndSwap(waiting, abandoned) || d.state.Load() == abandoned
}

// send reports whether the command may be written.
func (d *delivery) send() bool {
	return d.state.CompareAndSwap(waiting, sent) || d.state.Load() == sent
}

// tracked is a word of a command. The client marshals it only when it writes the command to a
// connection that is ready, however often it or a hook looks at the words before.
type tracked struct {
	word string
	of   *command
}

var errAbandoned = errors.New("goredis: the caller left before the command was sent")

// MarshalBinary implements encoding.BinaryMarshaler. If it fails the client closes the connection,
// on which at most a part of the command was written.
func (t *tracked) MarshalBinary() ([]byte, error) {
	if !t.of.delivery.send() {
		return nil, errAbandoned
	}
	return []byte(t.word), nil
}

// String implements fmt.Stringer, for hooks that log the words of a command.
func (t *tracked) String() string { return t.word }

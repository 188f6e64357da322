package goredis

import "sync/atomic"

// delivery records whether a command has left, for a caller that gives up meanwhile. Only one of
// the two happens: the client writes the command, or its caller abandons it. What the client writes
// of an abandoned command, the server refuses.
type delivery struct{ state atomic.Uint32 }

const (
	waiting = iota // for a connection: in the pool's queue, or until one is dialed and logged in
	sent
	abandoned
)

// sent reports whether the command may have left.
func (d *delivery) sent() bool { return d.state.Load() == sent }

// abandon reports whether the command has not left; then it is never executed.
func (d *delivery) abandon() bool {
	return d.state.CompareAndSwap(waiting, abandoned) || d.state.Load() == abandoned
}

// abandoned reports whether the caller has abandoned the command.
func (d *delivery) abandoned() bool { return d.state.Load() == abandoned }

// send reports whether the command may be executed.
func (d *delivery) send() bool {
	return d.state.CompareAndSwap(waiting, sent) || d.state.Load() == sent
}

// tracked is a word of a command. The client marshals it when it writes the command to a connection
// that is ready, however often it or a hook looks at the words before. A redis.AutoPipeliner
// marshals it when it queues the command, which counts as sent then.
type tracked struct {
	word string
	of   *command
}

// refused stands for the tracked word of an abandoned command. It is no option of SET, no digest,
// no Lua and no number of replicas: the server replies with an error and executes nothing. To fail
// instead would fail the commands beside it, and cost the connection.
const refused = "-"

// MarshalBinary implements encoding.BinaryMarshaler. It never fails.
func (t *tracked) MarshalBinary() ([]byte, error) {
	if !t.of.delivery.send() {
		return []byte(refused), nil
	}
	return []byte(t.word), nil
}

// String implements fmt.Stringer, for hooks that log the words of a command.
func (t *tracked) String() string { return t.word }

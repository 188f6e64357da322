package rueidis

import "time"

// route is how a command goes to the server.
type route uint8

const (
	// direct: over a shared connection of the client, in the caller's goroutine.
	direct route = iota
	// detached: over a shared connection, in another goroutine than the caller's. While it connects,
	// a client does not look at ctx, and a call may wait for another's dial. The late reply is
	// reported, if a caller leaves.
	detached
	// pooled: over a connection of the client's pool for these commands alone. The client closes it
	// if it gets no reply.
	pooled
	// spare: pooled if there is room at once, else detached.
	spare
)

const (
	// hurry is the rest of a ctx below which a command is sent detached: its caller may leave before
	// the reply.
	hurry = time.Second
	// warm is the number of replies in a row after which a command may go in its caller's goroutine.
	warm = 64
	// doubt is how long a shared connection may be silent before a free connection of the pool is
	// used.
	doubt = 50 * time.Millisecond
	// silence is how long it may be silent before commands wait for a connection of the pool.
	silence = 500 * time.Millisecond
	// urgentSilence is silence for renewals, releases and conversions.
	urgentSilence = 200 * time.Millisecond
)

// condition decides on the route of a command.
type condition struct {
	urgent  bool          // the command keeps or ends a hold
	warm    bool          // all shared connections stand, and the last commands were answered
	hurried bool          // the caller's ctx ends soon
	overdue time.Duration // for how long a shared connection of the node has been silent
}

// choose returns the route for a command. Commands on a dead shared connection are lost until the
// client's own ping has failed, so a silent one is avoided.
func choose(c condition) route {
	limit := silence
	if c.urgent {
		limit = urgentSilence
	}
	switch {
	case c.overdue >= limit:
		return pooled
	case c.overdue >= doubt:
		return spare
	case !c.warm || c.hurried:
		return detached
	default:
		return direct
	}
}

// overdue returns for how long a connection has been silent, as a command without a reply shows.
// The command was sent at sent, the last reply to any command of the node came at replied, and of
// the commands with a reply the latest was sent at newest. All are times since the same moment.
//
// A connection replies in order. A reply to an earlier command shows that the server is on its way
// to this one. A reply to a later command came over another connection and shows nothing.
func overdue(now, sent, replied, newest time.Duration) time.Duration {
	if newest <= sent {
		sent = max(sent, replied)
	}
	return max(0, now-sent)
}

package locker

import (
	"context"
	"time"
)

// State is what is known of a name at the server, at the moment of asking.
type State struct {
	Held bool
	// Owner and Note are the holder's; empty unless what is stored is exactly of our form.
	Owner, Note string
	Mode        Mode
	// Holds is the number of live holds.
	Holds int
	// Left is the time until the lease ends unless renewed. Zero: it has no end, as foreign data may.
	Left time.Duration
}

// Inspector is implemented by strategies that keep state in Redis. It tells what is stored now; by the time the answer is
// read, it may have changed. It is for people and tests, not for deciding who may write.
type Inspector interface {
	Inspect(ctx context.Context, name string) (State, error)
}

package locker

import (
	"errors"
	"fmt"
	"time"
)

// ErrNotReplicated matches every [ReplicaError].
var ErrNotReplicated = errors.New("too few replicas acknowledged it")

// ReplicaError reports that a server executed an operation, but that too few of its replicas
// acknowledged it in time: a failover could undo it. It matches ErrNotReplicated. An acquire that
// ends so is undone; a lock whose renewal ends so is held until its old Deadline.
type ReplicaError struct {
	// Acked replicas acknowledged it, Wanted were asked for.
	Acked, Wanted int
	// Within is the time that they had.
	Within time.Duration
}

// Error implements error.
func (e *ReplicaError) Error() string {
	return fmt.Sprintf("%v: %d of %d within %v", ErrNotReplicated, e.Acked, e.Wanted, e.Within)
}

// Is matches ErrNotReplicated.
func (e *ReplicaError) Is(target error) bool { return target == ErrNotReplicated }

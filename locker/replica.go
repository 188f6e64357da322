package locker

import (
	"errors"
	"fmt"
	"time"
)

// ErrNotReplicated matches every [ReplicaError].
var ErrNotReplicated = errors.New("too few replicas acknowledged it")

// ReplicaError says that a server did what it was asked, but that too few of its replicas acknowledged it in time: a failover
// could undo it. It matches ErrNotReplicated. A lock whose acquire ends so was given back; one whose renewal ends so is held
// until its old Deadline.
type ReplicaError struct {
	// Acked replicas have it, Wanted were asked for.
	Acked, Wanted int
	// Within is how long they had.
	Within time.Duration
}

// Error implements error.
func (e *ReplicaError) Error() string {
	return fmt.Sprintf("%v: %d of %d within %v", ErrNotReplicated, e.Acked, e.Wanted, e.Within)
}

// Is matches ErrNotReplicated.
func (e *ReplicaError) Is(target error) bool { return target == ErrNotReplicated }

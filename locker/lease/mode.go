package lease

import "fmt"

// Mode is locker.Mode: how a lock is held.
type Mode uint8

const (
	exclusive Mode = iota // locker.Exclusive
	shared                // locker.Shared
)

// String returns "exclusive" or "shared".
func (m Mode) String() string {
	switch m {
	case exclusive:
		return "exclusive"
	case shared:
		return "shared"
	default:
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
}

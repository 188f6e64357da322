package lease

import "fmt"

// Mode is locker.Mode.
type Mode uint8

// The modes: see locker.Exclusive and locker.Shared.
const (
	Exclusive Mode = iota // one holder
	Shared                // several holders, all of them shared
)

// String returns "exclusive" or "shared".
func (m Mode) String() string {
	switch m {
	case Exclusive:
		return "exclusive"
	case Shared:
		return "shared"
	default:
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
}

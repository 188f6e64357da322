package reentrant

import (
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// Locker is the strategy over one driver. A resumed hold keeps its owner: another Request.Owner
// than the handle's is ErrInvalid. Inspect takes time that grows with the number of holds; it
// answers with an error for a key that is not a lock of this package.
//
// It is the type [keylock.Locker]. Programs call Acquire, and the functions of package locker: Do,
// DoAll, Inspect, Watch, Break. The other methods are for these functions and for middleware.
type Locker = keylock.Locker

// New returns a Locker that locks through drv. Errors: ErrInvalid.
func New(drv driver.Driver, cfg Config) (*Locker, error) {
	return keylock.New(drv, keylock.Config(cfg), spec)
}

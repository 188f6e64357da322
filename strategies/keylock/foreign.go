package keylock

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// errForeign: the key holds data of another kind, which was left alone.
var errForeign = errors.New("key is of another type")

// Foreign is the error of the reply {-2, text}: what a script found at key. It matches driver.ErrPermanent.
func Foreign(key string, reply driver.Reply) error {
	found, err := reply.Text(1)
	if err != nil {
		return Malformed(err)
	}
	return driver.Permanent(fmt.Errorf("%w: %.64q holds %s; it was left alone", errForeign, key, found))
}

// inTheWay tells whether err is of a script that found data of others and so wrote nothing.
func inTheWay(err error) bool {
	return errors.Is(err, errForeign) || errors.Is(err, errCounter)
}

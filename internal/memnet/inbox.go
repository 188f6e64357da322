package memnet

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// segment is the data of one Write, or the end of the stream.
type segment struct {
	data []byte
	last error     // io.EOF or ECONNRESET instead of data
	at   time.Time // of its arrival
}

// inbox holds the segments sent to one end and not yet read, in order.
type inbox []segment

// read moves arrived data to p. If there is none yet, it returns 0 and the time of the next
// arrival; zero: nothing is on its way.
func (b *inbox) read(p []byte, now time.Time) (n int, next time.Time, err error) {
	switch {
	case b.reset(now):
		return 0, next, syscall.ECONNRESET
	case len(*b) == 0:
		return 0, next, nil
	}
	first := &(*b)[0]
	switch {
	case first.at.After(now):
		return 0, first.at, nil
	case first.last != nil:
		return 0, next, io.EOF
	}
	n = copy(p, first.data)
	if first.data = first.data[n:]; len(first.data) == 0 {
		*b = (*b)[1:]
	}
	return n, next, nil
}

// reset reports whether a reset has arrived.
func (b *inbox) reset(now time.Time) bool {
	if len(*b) == 0 {
		return false
	}
	last := (*b)[len(*b)-1]
	return errors.Is(last.last, syscall.ECONNRESET) && !last.at.After(now)
}

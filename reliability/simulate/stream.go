package simulate

import (
	"io"
	"time"
)

// segment is the data of one Write.
type segment struct {
	data []byte
	sent time.Time
	at   time.Time // when it arrives
	end  bool      // the end of the stream
}

// stream is one direction of a connection. Its link's mutex protects it.
type stream struct {
	segments []segment
	last     time.Time     // when the latest segment arrives
	sent     time.Time     // when the data read last was sent
	broken   error         // it was reset: there is nothing more to read
	wake     chan struct{} // something changed for the reader
}

func newStream() *stream { return &stream{wake: make(chan struct{}, 1)} }

// push sends a segment. It arrives at seg.at, but after those before it.
func (s *stream) push(seg segment) {
	if !seg.at.After(s.last) {
		seg.at = s.last.Add(time.Nanosecond)
	}
	s.last = seg.at
	s.segments = append(s.segments, seg)
	s.poke()
}

func (s *stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// shut ends the stream after the segments in flight. If lose is set, it drops them and ends at
// once.
func (s *stream) shut(now time.Time, lose bool) {
	if lose {
		s.segments = nil
	}
	s.push(segment{at: now, end: true})
}

// take reads the arrived data, unless it is held back until a later time. If it reads nothing, next
// is when there may be more; zero: when woken.
func (s *stream) take(p []byte, now, held time.Time) (n int, next time.Time, err error) {
	if s.broken != nil {
		return 0, next, s.broken
	}
	if len(s.segments) == 0 {
		return 0, next, nil
	}
	first := &s.segments[0]
	if next = later(first.at, held); next.After(now) {
		return 0, next, nil
	}
	if first.end {
		return 0, next, io.EOF
	}
	s.sent = first.sent
	n = copy(p, first.data)
	if first.data = first.data[n:]; len(first.data) == 0 {
		s.segments = s.segments[1:]
	}
	return n, next, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

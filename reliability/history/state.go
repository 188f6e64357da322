package history

import (
	"fmt"
	"strings"
)

// state is the state of a lock and of its store. It is a value: a step returns a new one.
type state struct {
	holds   string // the number and mode of each hold, see encode
	owner   string // of the holds, or of the last ones
	fence   int64  // the highest token handed out
	tenure  int64  // the token of the tenure; 0: none was handed out
	written int64  // the highest token of an accepted write
	maybe   int64  // the highest token of a possibly accepted write
}

const holdBytes = 4

// The modes of a hold. One of a semaphore has the mode '0' plus its permits.
const (
	sole   byte = 'x'
	reader byte = 's'

	// kept is added to the mode of a hold released before its MinHold had passed: nobody has it,
	// but it still excludes others.
	kept byte = 0x80
)

// modeOf returns the mode of a hold of a lock.
func modeOf(shared bool) byte {
	if shared {
		return reader
	}
	return sole
}

func encode(number int, mode byte) string {
	return string([]byte{byte(number >> 16), byte(number >> 8), byte(number), mode})
}

// find returns the index of a hold in s.holds, or -1.
func (s state) find(number int) int {
	want := encode(number, sole)[:holdBytes-1]
	for i := 0; i < len(s.holds); i += holdBytes {
		if s.holds[i:i+holdBytes-1] == want {
			return i
		}
	}
	return -1
}

// has reports whether a hold exists and is not kept.
func (s state) has(number int) bool {
	i := s.find(number)
	return i >= 0 && s.mode(i)&kept == 0
}

// mode returns the mode of the hold at index i.
func (s state) mode(i int) byte { return s.holds[i+holdBytes-1] }

// writes reports whether a hold exists, is not kept, and is exclusive.
func (s state) writes(number int) bool { return s.has(number) && s.mode(s.find(number)) != reader }

// live reports whether any hold exists and is not kept.
func (s state) live() bool {
	for i := 0; i < len(s.holds); i += holdBytes {
		if s.mode(i)&kept == 0 {
			return true
		}
	}
	return false
}

func (s state) count() int { return len(s.holds) / holdBytes }

// permits returns how many permits of a semaphore are held.
func (s state) permits() (n int) {
	for i := 0; i < len(s.holds); i += holdBytes {
		n += int(s.mode(i)&^kept - '0')
	}
	return n
}

// exclusive reports whether there is an exclusive hold, kept or not.
func (s state) exclusive() bool {
	return s.holds != "" && s.mode(len(s.holds)-holdBytes)&^kept == sole
}

// with returns s with a hold. Holds are sorted by their numbers: equal sets are equal values.
func (s state) with(number int, mode byte) state {
	one := encode(number, mode)
	at := 0
	for at < len(s.holds) && s.holds[at:at+holdBytes] < one {
		at += holdBytes
	}
	s.holds = s.holds[:at] + one + s.holds[at:]
	return s
}

func (s state) without(number int) state {
	if i := s.find(number); i >= 0 {
		s.holds = s.holds[:i] + s.holds[i+holdBytes:]
	}
	if s.holds == "" {
		s.tenure = 0
	}
	return s
}

// keep returns s with a hold marked as kept, if it exists.
func (s state) keep(number int) state {
	if i := s.find(number); i >= 0 {
		s.holds = s.holds[:i] + encode(number, s.mode(i)|kept) + s.holds[i+holdBytes:]
	}
	return s
}

func (s state) String() string {
	if s.holds == "" {
		return fmt.Sprintf("free, last fence %d", s.fence)
	}
	var b strings.Builder
	b.WriteString("held by")
	for i := 0; i < len(s.holds); i += holdBytes {
		number := int(s.holds[i])<<16 | int(s.holds[i+1])<<8 | int(s.holds[i+2])
		fmt.Fprintf(&b, " #%d%c", number, s.mode(i)&^kept)
		if s.mode(i)&kept != 0 {
			b.WriteString(" (kept)")
		}
	}
	fmt.Fprintf(&b, ", last fence %d", s.fence)
	return b.String()
}

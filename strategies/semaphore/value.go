package semaphore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// newValue returns the value of a new hold: "<token> <permits> <bytes of owner>:<owner><note>",
// with a fresh token.
func newValue(owner, note string, permits int) string {
	return fmt.Sprintf("%s %d %d:%s%s", lease.NewToken(), permits, len(owner), owner, note)
}

// hold is the content of a value.
type hold struct {
	permits     int
	owner, note string
}

// parse parses value. It returns the zero hold unless value has exactly newValue's form.
func parse(value string) hold {
	token, rest, ok1 := strings.Cut(value, " ")
	permits, rest, ok2 := strings.Cut(rest, " ")
	length, names, ok3 := strings.Cut(rest, ":")
	if !ok1 || !ok2 || !ok3 || !lease.IsToken(token) {
		return hold{}
	}
	n, okPermits := number(permits, MaxPermits)
	bytes, okOwner := number(length, min(len(names), locker.MaxNameLen))
	if !okPermits || !okOwner || n == 0 || len(names)-bytes > locker.MaxNameLen {
		return hold{}
	}
	return hold{n, names[:bytes], names[bytes:]}
}

// number parses the result of strconv.Itoa for 0 to most.
func number(text string, most int) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= most && strconv.Itoa(n) == text
}

// parseValue also parses a value kept by a release until MinHold has passed.
func parseValue(value string) (owner, note string) {
	h := parse(strings.TrimPrefix(value, "~"))
	return h.owner, h.note
}

func parsePermits(value string) int { return parse(value).permits }

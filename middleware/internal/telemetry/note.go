package telemetry

import "strings"

// noteMark begins a holder's trace context in a note; a W3C traceparent follows, and nothing else.
const noteMark = "traceparent="

// The parts of a traceparent, https://www.w3.org/TR/trace-context/#traceparent-header: "00-" trace
// ID "-" span ID "-" flags.
const (
	traceIDLen     = 32
	spanIDLen      = 16
	traceparentLen = len("00-") + traceIDLen + len("-") + spanIDLen + len("-01")
)

// JoinNote puts a traceparent behind the user's note. If the note would be longer than limit, or
// ends in a traceparent already, it is unchanged and ok is false.
func JoinNote(note, traceparent string, limit int) (joined string, ok bool) {
	if _, found := SplitNote(note); found != "" {
		return note, false
	}
	joined = noteMark + traceparent
	if note != "" {
		joined = note + " " + joined
	}
	if len(joined) > limit {
		return note, false
	}
	return joined, true
}

// SplitNote takes a note of JoinNote apart. Any other is all the user's: traceparent is "".
func SplitNote(note string) (user, traceparent string) {
	at := len(note) - len(noteMark) - traceparentLen
	if at < 0 || !strings.HasPrefix(note[at:], noteMark) {
		return note, ""
	}
	traceparent = note[at+len(noteMark):]
	if !validTraceparent(traceparent) {
		return note, ""
	}
	switch {
	case at == 0:
		return "", traceparent
	case note[at-1] != ' ' || at == 1:
		return note, ""
	}
	return note[:at-1], traceparent
}

// validTraceparent accepts version 00 in its canonical form, with non-zero IDs and its defined
// flags.
func validTraceparent(s string) bool {
	if len(s) != traceparentLen {
		return false
	}
	traceID, spanID, flags := s[3:3+traceIDLen], s[4+traceIDLen:4+traceIDLen+spanIDLen], s[traceparentLen-2:]
	return s[:3] == "00-" && s[3+traceIDLen] == '-' && s[traceparentLen-3] == '-' &&
		isHex(traceID) && isHex(spanID) && flags[0] == '0' && flags[1] >= '0' && flags[1] <= '3' &&
		strings.Trim(traceID, "0") != "" && strings.Trim(spanID, "0") != ""
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

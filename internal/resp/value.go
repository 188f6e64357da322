// Package resp reads and writes RESP2 and RESP3, the protocols of Redis, as far as test tools need
// them: the bytes of each message are kept for a proxy to pass them on unchanged, and a small Conn
// sends commands without a Redis client library.
//
// Streamed strings and aggregates of RESP3 ("$?", "*?") are not read: no server
// sends them.
package resp

import (
	"strconv"
	"strings"
)

// The first byte of a message tells its Kind.
const (
	SimpleString   byte = '+'
	SimpleError    byte = '-'
	Integer        byte = ':'
	BulkString     byte = '$'
	Array          byte = '*'
	Null           byte = '_'
	Boolean        byte = '#'
	Double         byte = ','
	BigNumber      byte = '('
	BulkError      byte = '!'
	VerbatimString byte = '='
	Map            byte = '%'
	Set            byte = '~'
	Attribute      byte = '|'
	Push           byte = '>'
	Inline         byte = 0 // a request of plain words, as typed in telnet
)

// Value is one message. The zero Value is no message.
type Value struct {
	Kind  byte
	Text  string  // of every kind without elements; "" if IsNil
	Elems []Value // of arrays, sets, pushes; maps and attributes: key, value, key, value
	IsNil bool
	Raw   []byte // the message as it came; set for a whole message, not for its elements
}

// Error is an error sent by the server, as in "ERR unknown command".
type Error string

// Error returns the server's text.
func (e Error) Error() string { return string(e) }

// Any returns v as int64, float64, bool, string, Error, nil or []any of these. Numbers that do not
// fit are left as strings.
func (v Value) Any() any {
	if v.IsNil {
		return nil
	}
	switch v.Kind {
	case Integer:
		if n, err := strconv.ParseInt(v.Text, 10, 64); err == nil {
			return n
		}
	case Double:
		if f, err := strconv.ParseFloat(v.Text, 64); err == nil {
			return f
		}
	case Boolean:
		return v.Text == "t"
	case SimpleError, BulkError:
		return Error(v.Text)
	case VerbatimString:
		_, text, _ := strings.Cut(v.Text, ":") // "txt:" names the format
		return text
	case Array, Set, Push, Map, Attribute:
		list := make([]any, len(v.Elems))
		for i, e := range v.Elems {
			list[i] = e.Any()
		}
		return list
	}
	return v.Text
}

// Args returns the texts of v's elements: the words of a request.
func (v Value) Args() []string {
	args := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		args[i] = e.Text
	}
	return args
}

// AppendCommand appends a request, an array of bulk strings, to b.
func AppendCommand(b []byte, args ...string) []byte {
	b = append(b, Array)
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, '\r', '\n')
	for _, a := range args {
		b = append(b, BulkString)
		b = strconv.AppendInt(b, int64(len(a)), 10)
		b = append(b, '\r', '\n')
		b = append(b, a...)
		b = append(b, '\r', '\n')
	}
	return b
}

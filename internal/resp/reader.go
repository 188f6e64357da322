package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrProtocol is below every error about bytes other than RESP.
var ErrProtocol = errors.New("resp: protocol error")

const (
	maxLength = 512 << 20 // of a bulk string, as in Redis
	maxDepth  = 64
)

// Reader reads messages from a stream. It is for one goroutine.
type Reader struct {
	br  *bufio.Reader
	raw []byte
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{br: bufio.NewReader(r)} }

// Read returns the next message. It returns io.EOF only between messages, and
// io.ErrUnexpectedEOF within one.
func (r *Reader) Read() (Value, error) {
	r.raw = nil
	v, err := r.value(0)
	if errors.Is(err, io.EOF) && len(r.raw) > 0 {
		err = io.ErrUnexpectedEOF
	}
	v.Raw = r.raw
	return v, err
}

// ReadRequest is Read for the server's side: a line without RESP is an inline request, and its
// words become Elems.
func (r *Reader) ReadRequest() (Value, error) {
	first, err := r.br.Peek(1)
	if err != nil || first[0] == Array {
		if err != nil {
			return Value{}, err
		}
		return r.Read()
	}
	r.raw = nil
	line, err := r.line()
	if err != nil {
		return Value{}, err
	}
	v := Value{Kind: Inline, Raw: r.raw}
	for word := range strings.FieldsSeq(line) {
		v.Elems = append(v.Elems, Value{Kind: BulkString, Text: word})
	}
	return v, nil
}

func (r *Reader) value(depth int) (Value, error) {
	line, err := r.line()
	if err != nil {
		return Value{}, err
	}
	if line == "" || depth > maxDepth {
		return Value{}, fmt.Errorf("%w: empty line, or nested deeper than %d", ErrProtocol, maxDepth)
	}
	v := Value{Kind: line[0], Text: line[1:]}
	switch v.Kind {
	case SimpleString, SimpleError, Integer, Boolean, Double, BigNumber:
		return v, nil
	case Null:
		v.Text, v.IsNil = "", true
		return v, nil
	case BulkString, BulkError, VerbatimString:
		return r.bulk(v)
	case Array, Set, Push, Map, Attribute:
		return r.elements(v, depth)
	}
	return Value{}, fmt.Errorf("%w: unknown type %q", ErrProtocol, line[0])
}

func (r *Reader) bulk(v Value) (Value, error) {
	n, err := length(v)
	if err != nil || n < 0 {
		return Value{Kind: v.Kind, IsNil: true}, err
	}
	start := len(r.raw)
	r.raw = append(r.raw, make([]byte, n+2)...)
	body := r.raw[start:]
	if _, err := io.ReadFull(r.br, body); err != nil {
		return Value{}, err
	}
	if body[n] != '\r' || body[n+1] != '\n' {
		return Value{}, fmt.Errorf("%w: a string of %d bytes does not end with CR LF", ErrProtocol, n)
	}
	v.Text = string(body[:n])
	return v, nil
}

func (r *Reader) elements(v Value, depth int) (Value, error) {
	n, err := length(v)
	v.Text = ""
	if err != nil || n < 0 {
		v.IsNil = true
		return v, err
	}
	if v.Kind == Map || v.Kind == Attribute {
		n *= 2
	}
	for range n {
		e, err := r.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		v.Elems = append(v.Elems, e)
	}
	return v, nil
}

func length(v Value) (int, error) {
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < -1 || n > maxLength {
		return 0, fmt.Errorf("%w: %q is no length", ErrProtocol, v.Text)
	}
	return n, nil
}

// line reads up to CR LF and returns the text before it.
func (r *Reader) line() (string, error) {
	b, err := r.br.ReadBytes('\n')
	r.raw = append(r.raw, b...)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

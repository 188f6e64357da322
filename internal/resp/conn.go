package resp

import (
	"fmt"
	"net"
)

// Conn is a connection to a server, for one goroutine at a time.
type Conn struct {
	net.Conn
	r *Reader
}

// NewConn returns a Conn over c and owns it.
func NewConn(c net.Conn) *Conn { return &Conn{Conn: c, r: NewReader(c)} }

// Send writes a request and waits for nothing. Each argument is sent as
// fmt.Sprint prints it, a []byte as it is.
func (c *Conn) Send(args ...any) error {
	words := make([]string, len(args))
	for i, a := range args {
		if b, ok := a.([]byte); ok {
			words[i] = string(b)
			continue
		}
		words[i] = fmt.Sprint(a)
	}
	_, err := c.Write(AppendCommand(nil, words...))
	return err
}

// Receive reads the next message, be it a reply or not.
func (c *Conn) Receive() (Value, error) { return c.r.Read() }

// Do sends a request and returns its reply, or the server's Error. Unrequested messages (RESP3
// pushes) are passed over.
func (c *Conn) Do(args ...any) (any, error) {
	if err := c.Send(args...); err != nil {
		return nil, err
	}
	for {
		v, err := c.Receive()
		if err != nil {
			return nil, err
		}
		if v.Kind == Push || v.Kind == Attribute {
			continue
		}
		reply := v.Any()
		if e, ok := reply.(Error); ok {
			return nil, e
		}
		return reply, nil
	}
}

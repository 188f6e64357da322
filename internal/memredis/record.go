package memredis

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
)

// record has the traffic of the connections to a server, with its times.
type record struct {
	began time.Time

	mu    sync.Mutex
	conns []*recorded
}

// recorded is a connection that keeps a copy of its traffic.
type recorded struct {
	net.Conn

	mu       sync.Mutex
	requests segments
	replies  segments
}

// segments are the bytes of one direction, with their times.
type segments struct {
	bytes []byte
	ends  []int
	at    []time.Time
}

func (s *segments) add(p []byte) {
	if len(p) > 0 {
		s.bytes = append(s.bytes, p...)
		s.ends, s.at = append(s.ends, len(s.bytes)), append(s.at, time.Now())
	}
}

// when returns when the byte before offset passed.
func (s *segments) when(offset int) time.Time {
	i, _ := slices.BinarySearch(s.ends, offset)
	return s.at[min(i, len(s.at)-1)]
}

// each calls f for each whole message.
func (s *segments) each(read func(*resp.Reader) (resp.Value, error), f func(time.Time, resp.Value)) {
	messages := resp.NewReader(bytes.NewReader(s.bytes))
	for end := 0; ; {
		v, err := read(messages)
		if err != nil {
			return
		}
		end += len(v.Raw)
		f(s.when(end), v)
	}
}

// conn records the traffic of c.
func (r *record) conn(c net.Conn) net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	rc := &recorded{Conn: c}
	r.conns = append(r.conns, rc)
	return rc
}

// Read implements net.Conn.
func (c *recorded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests.add(p[:n])
	return n, err
}

// Write implements net.Conn.
func (c *recorded) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies.add(p[:n])
	return n, err
}

// Events returns the server's requests and answers, a line each, in the order of time, counted from
// the start of the server. Of more than most lines it returns the last ones.
func (s *Server) Events(most int) []string {
	type event struct {
		at   time.Time
		line string
	}
	var events []event
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	for i, c := range s.record.conns {
		c.mu.Lock()
		add := func(arrow string) func(time.Time, resp.Value) {
			return func(at time.Time, v resp.Value) {
				words := strings.Join(v.Args(), " ")
				if v.Kind != resp.Array {
					words = fmt.Sprint(v.Any())
				}
				line := fmt.Sprintf("%+11.6fs  connection %d %s %.160q", at.Sub(s.record.began).Seconds(), i+1, arrow, words)
				events = append(events, event{at, line})
			}
		}
		c.requests.each((*resp.Reader).ReadRequest, add("asks"))
		c.replies.each((*resp.Reader).Read, add("gets"))
		c.mu.Unlock()
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	lines := make([]string, 0, most)
	for _, e := range events[max(0, len(events)-most):] {
		lines = append(lines, e.line)
	}
	return lines
}

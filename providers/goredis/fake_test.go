package goredis_test

import (
	"cmp"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/resp"
)

// Answers of a fake besides bytes of RESP2.
const (
	silence = ""    // it says nothing more on this connection
	hangUp  = "EOF" // it closes the connection
)

// fake is a Redis server in memory, also for synctest bubbles. answer replies to each command; the
// handshake gets the replies needed by go-redis.
type fake struct {
	answer      func(words []string) string
	unsubscribe string // answer to UNSUBSCRIBE from nothing; empty: as Redis does

	conns  atomic.Int32 // open ones
	dialed atomic.Int32

	mu   sync.Mutex
	seen []string // names of the commands passed to answer, in order
}

// options are those of a client of f.
func (f *fake) options() *redis.Options {
	return &redis.Options{Addr: "192.0.2.1:6379", Dialer: f.dial} // no name, or a lookup leaves the bubble
}

func (f *fake) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // as a net.Dialer does
	}
	near, far := net.Pipe()
	f.conns.Add(1)
	f.dialed.Add(1)
	go f.serve(far)
	return near, nil
}

func (f *fake) serve(conn net.Conn) {
	defer f.conns.Add(-1)
	defer conn.Close()
	requests := resp.NewReader(conn)
	for silent := false; ; {
		request, err := requests.ReadRequest()
		if err != nil {
			return
		}
		if silent {
			continue
		}
		switch reply := f.reply(request.Args()); reply {
		case hangUp:
			return
		case silence:
			silent = true
		default:
			if _, err := conn.Write([]byte(reply)); err != nil {
				return
			}
		}
	}
}

func (f *fake) reply(words []string) string {
	switch name := strings.ToUpper(words[0]); name {
	case "HELLO":
		return "-ERR unknown command\r\n" // so RESP2 it is
	case "CLIENT", "READONLY":
		return "+OK\r\n"
	case "UNSUBSCRIBE":
		if len(words) == 1 {
			return cmp.Or(f.unsubscribe, "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n")
		}
		fallthrough
	default:
		f.mu.Lock()
		f.seen = append(f.seen, name)
		f.mu.Unlock()
		return f.answer(words)
	}
}

// count returns the number of commands with that name, before or after a hangUp.
func (f *fake) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.seen {
		if s == name {
			n++
		}
	}
	return n
}

package simulate

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	redis "github.com/alicebob/miniredis/v2/server"
)

// server is a miniredis with a settable clock and faults.
type server struct {
	m *miniredis.Miniredis

	mu      sync.Mutex
	offset  time.Duration // of its clock
	refusal string        // the error reply to every locking command; "": none
	down    time.Time     // until when it accepts no connections
}

func newServer() (*server, error) {
	s := &server{m: miniredis.NewMiniRedis()}
	s.m.ClockTTL(true)
	first, err := s.m.Dial() // starts it
	if err != nil {
		return nil, err
	}
	if err := first.Close(); err != nil {
		return nil, err
	}
	s.m.Server().SetPreHook(s.before)
	return s, nil
}

// before is called before each command, those in scripts too.
func (s *server) before(peer *redis.Peer, cmd string, args ...string) bool {
	nx := cmd == "SET" && len(args) > 2 && strings.EqualFold(args[2], "NX")
	if !nx && cmd != "EVALSHA" && cmd != "EVAL" { // no script of Holdfast calls these: not from a script
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != "" {
		peer.WriteError(s.refusal)
		return true
	}
	s.tick()
	return false
}

// tick sets the clock. The mutex is held.
func (s *server) tick() { s.m.SetTime(time.Now().Add(s.offset)) }

// serve serves one connection, unless the server is down.
func (s *server) serve(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down.After(time.Now()) {
		return false
	}
	s.m.Server().ServeConn(c)
	return true
}

// step steps the clock. As in Redis, keys expire at a time of this clock.
func (s *server) step(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	s.m.Exists("") // removes the keys expired until now
	s.offset += by
	s.tick()
	if by < 0 {
		s.m.FastForward(by) // else miniredis would not expire keys later than before
	}
}

// refuse answers locking commands by an error until it is given "".
func (s *server) refuse(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = text
}

// stop makes the server accept no connections for d, or for longer if an earlier call said so.
func (s *server) stop(lasts time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = later(s.down, time.Now().Add(lasts))
}

// start makes it accept connections again.
func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = time.Time{}
}

// run executes a command directly at the server.
func (s *server) run(args ...string) {
	s.m.Server().Dispatch(redis.NewPeer(bufio.NewWriter(io.Discard)), args)
}

// empty deletes all keys.
func (s *server) empty() { s.m.FlushAll() }

// forgetScripts forgets all scripts, as a restart does.
func (s *server) forgetScripts() { s.run("SCRIPT", "FLUSH") }

// census returns the unexpected keys once every lease and every intent has ended: all but fence
// counters with a TTL.
func (s *server) census() (left []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	for _, key := range s.m.Keys() {
		switch {
		case !strings.HasSuffix(key, ":fence"):
			left = append(left, fmt.Sprintf("%s, for another %v", key, s.m.TTL(key)))
		case s.m.TTL(key) <= 0:
			left = append(left, key+", a fence counter that never expires")
		}
	}
	return left
}

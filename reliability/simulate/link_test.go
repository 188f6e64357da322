package simulate

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

// wire is a test's connection to a server over a link.
type wire struct {
	*link
	t *testing.T
}

func onWire(t *testing.T, f func(t *testing.T, w wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := locker.Must(newServer())
		defer s.m.Close()
		f(t, wire{&link{seed: 1, server: s}, t})
	})
}

func (w wire) open() net.Conn {
	w.t.Helper()
	c := locker.Must(w.dial(w.t.Context()))
	return c
}

// append sends the command that appends text to the key k.
func (w wire) append(c net.Conn, text string) {
	w.t.Helper()
	script := "return redis.call('APPEND', 'k', ARGV[1])"
	if _, err := fmt.Fprintf(c, "*4\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n$%d\r\n%s\r\n", len(script), script, len(text), text); err != nil {
		w.t.Errorf("send: %v", err)
	}
	c.(*endpoint).commands = true
}

// reply reads a reply, for at most patience.
func (w wire) reply(c net.Conn, patience time.Duration) (string, error) {
	w.t.Helper()
	check.OK(w.t, c.SetDeadline(time.Now().Add(patience)))
	p := make([]byte, 100)
	n, err := c.Read(p)
	return string(p[:n]), err
}

func (w wire) stored(want string) {
	w.t.Helper()
	synctest.Wait()
	got, _ := w.server.m.Get("k")
	check.Equal(w.t, "executed", got, want)
}

// answered fails the test unless a reply comes after notBefore, at most 10 ms later.
func (w wire) answered(c net.Conn, notBefore time.Duration) {
	w.t.Helper()
	start := time.Now()
	if got, err := w.reply(c, time.Hour); err != nil || got[0] != ':' {
		w.t.Errorf("reply %q, %v", got, err)
	}
	check.Within(w.t, "time that it took", time.Since(start), notBefore, notBefore+10*time.Millisecond)
}

func (w wire) fails(c net.Conn, patience time.Duration, want error) {
	w.t.Helper()
	if got, err := w.reply(c, patience); !errors.Is(err, want) {
		w.t.Errorf("reply %q, %v; want %v", got, err, want)
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	const s = time.Second
	check.Each(t, map[string]func(w wire, c net.Conn){
		"calm": func(w wire, c net.Conn) {
			w.append(c, "a")
			w.answered(c, 0)
		},
		"frozen": func(w wire, c net.Conn) {
			w.append(c, "a")
			w.hold(s, true, true, false)
			sleep(s / 2)
			w.stored("")
			w.answered(c, s/2)
		},
		"server frozen": func(w wire, c net.Conn) {
			w.append(c, "a")
			w.hold(s, true, false, false)
			w.answered(c, s)
		},
		"client paused": func(w wire, c net.Conn) {
			w.append(c, "a")
			w.hold(s, false, true, true)
			w.append(c, "b")
			sleep(s / 2)
			w.stored("a") // it was sent before
			w.answered(c, s/2)
			w.answered(c, 0)
			w.stored("ab")
		},
		"overtaken": func(w wire, c net.Conn) {
			w.lag(s, time.Minute)
			w.append(c, "a")
			second := w.open()
			w.append(second, "b")
			w.answered(second, 0)
			w.stored("b")
			if err := c.Close(); err != nil { // the command under way arrives nevertheless
				w.t.Error(err)
			}
			sleep(2 * s)
			w.stored("ba")
		},
		"slow": func(w wire, c net.Conn) {
			w.delay(s, time.Minute)
			w.append(c, "a")
			w.answered(c, 2*s)
		},
		"reply dropped": func(w wire, c net.Conn) {
			w.lose(1, 0)
			w.append(c, "a")
			w.fails(c, time.Hour, os.ErrDeadlineExceeded)
			w.stored("a")
			c = w.open()
			w.append(c, "b")
			w.answered(c, 0)
			w.stored("ab")
		},
		"reply dropped, then broken": func(w wire, c net.Conn) {
			w.lose(1, s)
			w.append(c, "a")
			w.fails(c, s/2, os.ErrDeadlineExceeded)
			w.fails(c, s, syscall.ECONNRESET)
			w.stored("a")
		},
		"reply replaced": func(w wire, c net.Conn) {
			w.spoil(1)
			w.append(c, "a")
			if got, err := w.reply(c, s); err != nil || got[0] != '-' {
				w.t.Errorf("reply %q, %v", got, err)
			}
			w.stored("a")
		},
		"reset before the command came": func(w wire, c net.Conn) {
			w.append(c, "a")
			w.cut(true)
			w.fails(c, s, syscall.ECONNRESET)
			sleep(s)
			w.stored("")
		},
		"reset, though the command comes": func(w wire, c net.Conn) {
			w.append(c, "a")
			w.cut(false)
			w.fails(c, s, syscall.ECONNRESET)
			sleep(s)
			w.stored("a")
		},
		"half-open": func(w wire, c net.Conn) {
			w.forget(10 * s)
			w.append(c, "a")
			w.fails(c, 9*s, os.ErrDeadlineExceeded)
			w.fails(c, 2*s, syscall.ECONNRESET)
			w.stored("")
			c = w.open()
			w.append(c, "b")
			w.answered(c, 0)
		},
		"healed": func(w wire, c net.Conn) {
			w.forget(time.Hour)
			w.heal()
			w.fails(c, s, syscall.ECONNRESET)
		},
		"server down": func(w wire, _ net.Conn) {
			w.server.stop(s)
			w.server.stop(s / 2)
			w.cut(false)
			check.Is(w.t, check.ErrOf(w.dial(w.t.Context())), syscall.ECONNREFUSED)
			sleep(3 * s / 4)
			check.Is(w.t, check.ErrOf(w.dial(w.t.Context())), syscall.ECONNREFUSED)
			sleep(s / 4)
			c := w.open()
			w.append(c, "a")
			w.answered(c, 0)
		},
		"server refuses": func(w wire, c net.Conn) {
			w.server.refuse("OOM none left")
			w.append(c, "a")
			if got, err := w.reply(c, s); err != nil || got != "-OOM none left\r\n" {
				w.t.Errorf("reply %q, %v", got, err)
			}
			w.stored("")
		},
		"server closes": func(w wire, c net.Conn) {
			w.server.m.Close()
			w.fails(c, s, io.EOF)
		},
		"dialed while frozen": func(w wire, _ net.Conn) {
			w.hold(s, true, true, false)
			start := time.Now()
			w.open()
			check.AtLeast(w.t, "time that it took", time.Since(start), s)
			w.hold(time.Hour, true, true, false)
			if _, err := w.dial(w.t.Context()); err == nil {
				w.t.Error("dialed a frozen server")
			}
		},
	}, func(t *testing.T, f func(w wire, c net.Conn)) {
		onWire(t, func(_ *testing.T, w wire) { f(w, w.open()) })
	})
}

// A key expires by the server's clock, as in Redis: a step of the clock moves its end.
func TestServerClock(t *testing.T) {
	t.Parallel()
	for by, want := range map[time.Duration]time.Duration{
		0: time.Minute, 10 * time.Second: 50 * time.Second, -10 * time.Second: 70 * time.Second, 2 * time.Minute: 0,
	} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			onWire(t, func(t *testing.T, w wire) {
				sleep(time.Second)
				w.server.step(0)
				check.Must(t, w.server.m.Set("k", "v"))
				w.server.m.SetTTL("k", time.Minute)
				sleep(5 * time.Second)
				w.server.step(by)
				got := time.Duration(0)
				if left := w.server.census(); len(left) == 1 {
					got = w.server.m.TTL("k") + 5*time.Second
				}
				check.Equal(t, "life after a step of "+by.String(), got, want)
			})
		})
	}
}

// The census ignores expiring fence counters, and nothing else.
func TestCensus(t *testing.T) {
	t.Parallel()
	onWire(t, func(t *testing.T, w wire) {
		m := w.server.m
		for _, key := range []string{"job", "job:fence", "{a}:fence"} {
			check.Must(t, m.Set(key, "1"))
		}
		m.SetTTL("job", time.Hour)
		m.SetTTL("job:fence", time.Hour)
		check.Equal(t, "keys that are left", len(w.server.census()), 2)
		sleep(2 * time.Hour)
		check.Equal(t, "keys that are left later", len(w.server.census()), 1)
	})
}

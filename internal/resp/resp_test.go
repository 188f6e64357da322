package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/resp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// messages are possible messages of a server, with the result of Any.
var messages = []struct {
	raw  string
	want any
}{
	{"+OK\r\n", "OK"},
	{"+\r\n", ""},
	{"-ERR no\r\n", resp.Error("ERR no")},
	{":-12\r\n", int64(-12)},
	{":99999999999999999999\r\n", "99999999999999999999"},
	{"$5\r\na\r\nb\x00\r\n", "a\r\nb\x00"},
	{"$0\r\n\r\n", ""},
	{"$-1\r\n", nil},
	{"*0\r\n", []any{}},
	{"*-1\r\n", nil},
	{"*3\r\n:1\r\n*2\r\n$1\r\nx\r\n*-1\r\n-E\r\n", []any{int64(1), []any{"x", nil}, resp.Error("E")}},
	{"_\r\n", nil},
	{"#t\r\n", true},
	{"#f\r\n", false},
	{",1.5\r\n", 1.5},
	{"(3492890328409238509324850943850943825024385\r\n", "3492890328409238509324850943850943825024385"},
	{"!5\r\nE a\r\n\r\n", resp.Error("E a\r\n")},
	{"=8\r\ntxt:a: b\r\n", "a: b"},
	{"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n", []any{"a", int64(1), "b", []any{nil}}},
	{"~2\r\n:1\r\n:2\r\n", []any{int64(1), int64(2)}},
	{"|1\r\n+ttl\r\n:3\r\n", []any{"ttl", int64(3)}},
	{">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n", []any{"invalidate", []any{"k"}}},
}

// All messages in one stream, byte by byte.
func TestRead(t *testing.T) {
	t.Parallel()
	var stream strings.Builder
	for _, m := range messages {
		stream.WriteString(m.raw)
	}
	r := resp.NewReader(iotest.OneByteReader(strings.NewReader(stream.String())))
	for _, m := range messages {
		v, err := r.Read()
		check.Must(t, err)
		if string(v.Raw) != m.raw || v.Kind != m.raw[0] {
			t.Errorf("kind %q, raw %q, want %q", v.Kind, v.Raw, m.raw)
		}
		if got := v.Any(); !reflect.DeepEqual(got, m.want) {
			t.Errorf("%q is %#v, want %#v", m.raw, got, m.want)
		}
	}
	check.Error(t, "at the end", check.ErrOf(r.Read()), io.EOF)
}

func TestReadEndsWithinAMessage(t *testing.T) {
	t.Parallel()
	for _, m := range messages {
		for cut := 1; cut < len(m.raw); cut++ {
			check.Error(t, m.raw[:cut], check.ErrOf(resp.NewReader(strings.NewReader(m.raw[:cut])).Read()), io.ErrUnexpectedEOF)
		}
	}
}

func TestReadRefusesWhatIsNoRESP(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"\r\n", "hello\r\n", "$x\r\n", "$\r\n", "$-2\r\n", "$999999999999\r\n", "*1\r\n?\r\n",
		"$1\r\nabc\r\n", "%x\r\n", "*9223372036854775807\r\n", strings.Repeat("*1\r\n", 100),
	} {
		check.Error(t, raw, check.ErrOf(resp.NewReader(strings.NewReader(raw)).Read()), resp.ErrProtocol)
	}
}

func TestReadRequest(t *testing.T) {
	t.Parallel()
	stream := string(resp.AppendCommand(nil, "SET", "k", "v\r\n*1\r\n")) + "PING  a\r\n\r\n" + string(resp.AppendCommand(nil, "GET", ""))
	r := resp.NewReader(strings.NewReader(stream))
	var raw []byte
	for _, want := range [][]string{{"SET", "k", "v\r\n*1\r\n"}, {"PING", "a"}, {}, {"GET", ""}} {
		v, err := r.ReadRequest()
		check.Must(t, err)
		if got := v.Args(); !reflect.DeepEqual(got, want) {
			t.Errorf("request %q, want %q", got, want)
		}
		raw = append(raw, v.Raw...)
	}
	check.Equal(t, "raw", string(raw), stream)
	check.Error(t, "at the end", check.ErrOf(r.ReadRequest()), io.EOF)
}

func TestConn(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	c := resp.NewConn(client)
	defer c.Close()
	go func() {
		defer server.Close()
		r := resp.NewReader(server)
		for _, reply := range []string{">1\r\n+push\r\n|1\r\n+a\r\n+b\r\n:7\r\n", "-ERR no\r\n"} {
			v, err := r.ReadRequest()
			if got := fmt.Sprint(v.Args()); err != nil || got != "[SET k 1 b]" {
				reply = "-ERR sent " + got + "\r\n"
			}
			_, _ = io.WriteString(server, reply)
		}
	}()
	if got, err := c.Do("SET", "k", 1, []byte("b")); got != int64(7) || err != nil {
		t.Errorf("Do: %v, %v; want 7", got, err)
	}
	if got, err := c.Do("SET", "k", 1, []byte("b")); got != nil || !errors.Is(err, resp.Error("ERR no")) {
		t.Errorf("Do: %v, %v; want the server's error", got, err)
	}
	check.Equal(t, "Do on a closed connection succeeds", check.ErrOf(c.Do("SET")) == nil, false)
}

// Every input is passed on byte by byte.
func FuzzRead(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(m.raw))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := resp.NewReader(bytes.NewReader(stream))
		var raw []byte
		for {
			v, err := r.Read()
			if err != nil {
				break
			}
			_ = v.Any()
			raw = append(raw, v.Raw...)
		}
		if !bytes.HasPrefix(stream, raw) {
			t.Errorf("read %q of %q", raw, stream)
		}
	})
}

package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

// A script's answer is the same through every client, beside others too, or an error through every
// one. To SET NX, OK is yes, nil is no, and all else is an error.
func FuzzReplies(f *testing.F) {
	for _, reply := range []string{
		":1\r\n", ":-9223372036854775808\r\n", "$-1\r\n", "*-1\r\n", "$0\r\n\r\n", "$3\r\na\r\n\r\n", "+OK\r\n", "*0\r\n", "*1\r\n$-1\r\n", "*1\r\n*-1\r\n",
		"*3\r\n:1\r\n$-1\r\n$1\r\nx\r\n", "*1\r\n*0\r\n", "*2\r\n:1\r\n-ERR no\r\n", "*2\r\n*1\r\n-NOSCRIPT no\r\n:1\r\n", "*1\r\n+message\r\n",
	} {
		f.Add([]byte(reply))
	}
	var answer atomic.Pointer[[]byte]
	addr := serve(f, &answer)
	drivers := make([]driver.Driver, len(clients.WithFork))
	for i, c := range clients.WithFork {
		drivers[i] = c.OpenMini(f, addr)
	}
	script := driver.NewScript("return")
	f.Fuzz(func(t *testing.T, message []byte) {
		v, err := resp.NewReader(bytes.NewReader(message)).Read()
		raw, ok := encode(nil, v)
		if err != nil || !ok || v.Kind == resp.SimpleError {
			return
		}
		answer.Store(&raw)
		want, wantErr := driver.NewReply(v.Any())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i, drv := range drivers {
			eval := func() {
				got, err := drv.Eval(ctx, script, []string{"a"}, nil)
				if (err == nil) != (wantErr == nil) || err == nil && show(got) != show(want) {
					t.Errorf("%s made of %q: %s, %v; want %s, %v", clients.WithFork[i].Name, raw, show(got), err, show(want), wantErr)
				}
			}
			eval()
			var wg sync.WaitGroup
			for range 12 { // some travel together
				wg.Go(eval)
			}
			wg.Wait()
			set, err := drv.SetNX(ctx, "a", "b", time.Second)
			if set != (v.Any() == "OK") || (err == nil) != (set || v.IsNil) {
				t.Errorf("%s made of %q, as the answer to SET NX: %v, %v", clients.WithFork[i].Name, raw, set, err)
			}
		}
	})
}

// show formats all parts of a Reply.
func show(r driver.Reply) string {
	var b strings.Builder
	for i := range r.Len() {
		if n, err := r.Int(i); err == nil {
			fmt.Fprintf(&b, " %d", n)
		} else if s, err := r.Text(i); err == nil {
			fmt.Fprintf(&b, " %q", s)
		} else {
			fmt.Fprintf(&b, " nil: %v", r.IsNil(i))
		}
	}
	return b.String()
}

// encode makes RESP2 of v, as a server would; false if no server sends it.
func encode(b []byte, v resp.Value) (_ []byte, ok bool) {
	switch {
	case v.Kind == resp.Array && v.IsNil:
		return append(b, "*-1\r\n"...), true
	case v.Kind == resp.BulkString && v.IsNil:
		return append(b, "$-1\r\n"...), true
	}
	switch v.Kind {
	case resp.Integer:
		n, err := strconv.ParseInt(v.Text, 10, 64)
		return fmt.Appendf(b, ":%d\r\n", n), err == nil
	case resp.SimpleString, resp.SimpleError:
		return fmt.Appendf(b, "%c%s\r\n", v.Kind, v.Text), v.Text != "" && !strings.ContainsAny(v.Text, "\r\n")
	case resp.BulkString:
		return fmt.Appendf(b, "$%d\r\n%s\r\n", len(v.Text), v.Text), true
	case resp.Array:
		b = fmt.Appendf(b, "*%d\r\n", len(v.Elems))
		for _, e := range v.Elems {
			if b, ok = encode(b, e); !ok {
				return nil, false
			}
		}
		return b, true
	}
	return nil, false
}

// serve starts a server with one answer to every script and SET, and returns its address.
func serve(f *testing.F, answer *atomic.Pointer[[]byte]) string {
	f.Helper()
	l, err := new(net.ListenConfig).Listen(f.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				requests := resp.NewReader(conn)
				for {
					request, err := requests.ReadRequest()
					if err != nil {
						return
					}
					reply := []byte("+OK\r\n")
					switch strings.ToUpper(request.Args()[0]) {
					case "EVAL", "EVALSHA", "SET":
						reply = *answer.Load()
					case "HELLO":
						reply = []byte("*4\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:2\r\n")
					}
					if _, err := conn.Write(reply); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

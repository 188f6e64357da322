//nolint:forbidigo // fake time
package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// scriptServer knows scripts, and takes a second for each command.
type scriptServer struct {
	mu                       sync.Mutex
	known                    bool
	executed, refused, loads int
}

func (s *scriptServer) send(command, _ string) (driver.Reply, error) {
	time.Sleep(50 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if command == "EVAL" {
		s.known = true
		s.loads++
	}
	if !s.known {
		s.refused++
		return driver.Reply{}, NewServerError("NOSCRIPT No matching script. Please use EVAL.", errors.New("NOSCRIPT"))
	}
	s.executed++
	return driver.NewReply(1)
}

// Of many concurrent callers of a script unknown to the server, one sends the source.
func TestScriptsAreLoadedOnce(t *testing.T) {
	t.Parallel()
	script := driver.NewScript("return 1")
	type call func(ctx context.Context, scripts *scriptCache, server *scriptServer) error
	check.EachInFakeTime(t, map[string]call{
		"Eval": func(ctx context.Context, scripts *scriptCache, server *scriptServer) error {
			return check.ErrOf(scripts.eval(ctx, script, server.send))
		},
		"EvalAcked": func(ctx context.Context, scripts *scriptCache, server *scriptServer) error {
			_, _, err := scripts.evalAcked(ctx, script, 1, time.Minute,
				func(command, body string, _ [2]string) (driver.Reply, int, error) {
					reply, err := server.send(command, body)
					return reply, 1, err
				})
			return err
		},
	}, func(t *testing.T, eval call) {
		var scripts scriptCache
		var server scriptServer
		const callers = 1000
		for round, most := range []int{1, callers + 1} { // calls in flight when the server forgets the script are refused
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() { check.OK(t, eval(t.Context(), &scripts, &server)) })
			}
			wg.Wait()
			if server.loads != 1 || server.refused > most || server.executed != callers {
				t.Errorf("round %d: sent by source %d times, refused %d times, executed %d times", round, server.loads, server.refused, server.executed)
			}
			server = scriptServer{}
		}
	})
}

func TestScriptsWaitForTheFirstCall(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var scripts scriptCache
		s := driver.NewScript("return 1")
		go func() {
			_, _ = scripts.eval(context.Background(), s, func(string, string) (driver.Reply, error) {
				time.Sleep(time.Minute)
				return driver.Reply{}, errors.New("i/o timeout")
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := scripts.eval(ctx, s, func(string, string) (driver.Reply, error) {
			t.Error("sent beside the first call")
			return driver.Reply{}, nil
		})
		check.Error(t, "Eval", err, driver.ErrNotSent, context.DeadlineExceeded)
		start := time.Now()
		if _, err := scripts.eval(t.Context(), s, func(string, string) (driver.Reply, error) { return driver.NewReply(1) }); err != nil {
			t.Errorf("Eval beside a first call that hangs: %v", err)
		}
		check.Took(t, "waiting for a first call that hangs", start, 200*time.Millisecond)
		start = time.Now()
		_, err = scripts.eval(t.Context(), s, func(string, string) (driver.Reply, error) { return driver.NewReply(1) })
		check.OK(t, err)
		check.Took(t, "a call after one that found out", start, 0)
		time.Sleep(time.Minute)
		for range 2 { // after its failure the next caller loads
			if _, err := scripts.eval(t.Context(), s, func(string, string) (driver.Reply, error) { return driver.NewReply(1) }); err != nil {
				t.Errorf("Eval: %v", err)
			}
		}
	})
}

// A script unknown to the server is sent by source, once.
func TestScriptCacheSendsSource(t *testing.T) {
	t.Parallel()
	cut := errors.New("EOF")
	noscript := NewServerError("NOSCRIPT No matching script. Please use EVAL.", cut)
	busy := NewServerError("BUSY Redis is busy running a script.", cut)
	type test struct {
		answers []error
		sent    []string
	}
	check.Each(t, map[string]test{
		"known script":              {[]error{nil}, []string{"EVALSHA"}},
		"unknown script":            {[]error{noscript, nil}, []string{"EVALSHA", "EVAL"}},
		"unknown script, wrapped":   {[]error{fmt.Errorf("client: %w", noscript), nil}, []string{"EVALSHA", "EVAL"}},
		"unknown for ever":          {[]error{noscript, noscript}, []string{"EVALSHA", "EVAL"}},
		"lost answer":               {[]error{cut}, []string{"EVALSHA"}},
		"lost answer of the source": {[]error{noscript, cut}, []string{"EVALSHA", "EVAL"}},
		"refused":                   {[]error{busy}, []string{"EVALSHA"}},
		"not a server's word":       {[]error{errors.New("NOSCRIPT says the proxy")}, []string{"EVALSHA"}},
	}, func(t *testing.T, tt test) {
		s := driver.NewScript("return 2")
		var sent []string
		var scripts scriptCache
		r, err := scripts.eval(t.Context(), s, func(command, body string) (driver.Reply, error) {
			if want := map[string]string{"EVALSHA": s.Digest(), "EVAL": s.Source()}[command]; body != want {
				t.Errorf("%s with %q, want %q", command, body, want)
			}
			sent = append(sent, command)
			if err := tt.answers[len(sent)-1]; err != nil {
				return driver.Reply{}, err
			}
			return driver.NewReply(2)
		})
		check.EqualSlices(t, "sent", sent, tt.sent)
		last := tt.answers[len(tt.answers)-1]
		if err != last { //nolint:errorlint // the very error, not wrapped
			t.Errorf("error %v, want %v", err, last)
		}
		if n, _ := r.Int(0); last == nil && n != 2 {
			t.Errorf("reply %v, want 2", r)
		}
	})
}

func TestAckedReply(t *testing.T) {
	t.Parallel()
	refused := NewServerError("NOPERM no WAIT", nil)
	for what, tt := range map[string]struct {
		reply   any
		err     error
		acked   any
		waitErr error

		want   int
		behind bool // a WaitError
		is     error
	}{
		"both answered":         {reply: "yes", acked: int64(2), want: 2},
		"nobody acknowledged":   {reply: nil, acked: int64(0)},
		"the script refused":    {err: refused, acked: int64(1), is: refused},
		"both lost":             {err: io.EOF, waitErr: io.ErrUnexpectedEOF, is: io.EOF},
		"a reply of no kind":    {reply: 1.5, acked: int64(1), is: errors.New("")},
		"the WAIT refused":      {reply: "yes", waitErr: refused, behind: true, is: refused},
		"the WAIT lost":         {reply: "yes", waitErr: io.EOF, behind: true, is: io.EOF},
		"the WAIT not answered": {reply: "yes", acked: "OK", behind: true, is: errors.New("")},
	} {
		reply, acked, err := ackedReply(tt.reply, tt.err, tt.acked, tt.waitErr)
		if (err == nil) != (tt.is == nil) || tt.is != nil && tt.is.Error() != "" && !errors.Is(err, tt.is) {
			t.Errorf("%s: error %v, want %v", what, err, tt.is)
		}
		if acked != tt.want || errors.As(err, new(*driver.WaitError)) != tt.behind {
			t.Errorf("%s: %d, %v", what, acked, err)
		}
		if text, _ := reply.Text(0); tt.is == nil && tt.reply == "yes" && text != "yes" {
			t.Errorf("%s: the reply is %q", what, text)
		}
	}
}

// A WAIT after NOSCRIPT takes time too; the two together take no longer than the timeout.
func TestScriptsEvalAckedWaitsNoLonger(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{0, 1200 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var waits []string
			var scripts scriptCache
			_, acked, err := scripts.evalAcked(t.Context(), driver.NewScript("return 1"), 2, 1500*time.Millisecond,
				func(command, _ string, wait [2]string) (driver.Reply, int, error) {
					waits = append(waits, command+" "+wait[0]+" "+wait[1])
					if command == "EVALSHA" {
						time.Sleep(took) //nolint:forbidigo // fake time
						return driver.Reply{}, 1, NewServerError("NOSCRIPT none", nil)
					}
					return driver.Reply{}, 2, nil
				})
			left := strconv.FormatInt(max(1500-took.Milliseconds(), 1), 10)
			if want := []string{"EVALSHA 2 1500", "EVAL 2 " + left}; !slices.Equal(waits, want) || acked != 2 || err != nil {
				t.Errorf("after %v: %q, %d, %v; want %q", took, waits, acked, err, want)
			}
		})
	}
}

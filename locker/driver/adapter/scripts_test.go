//nolint:forbidigo // fake time
package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
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
		return driver.Reply{}, adapter.NewServerError("NOSCRIPT No matching script. Please use EVAL.", errors.New("NOSCRIPT"))
	}
	s.executed++
	return driver.NewReply(1)
}

// Of many concurrent callers of a script that the server does not know, one sends the source.
func TestScriptsAreLoadedOnce(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var scripts adapter.ScriptCache
		var server scriptServer
		s := driver.NewScript("return 1")
		const callers = 1000
		for round, most := range []int{1, callers + 1} { // those in flight when the server forgets it are refused
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					if _, err := scripts.Eval(t.Context(), s, server.send); err != nil {
						t.Errorf("Eval: %v", err)
					}
				})
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
		var scripts adapter.ScriptCache
		s := driver.NewScript("return 1")
		go func() {
			_, _ = scripts.Eval(context.Background(), s, func(string, string) (driver.Reply, error) {
				time.Sleep(time.Minute)
				return driver.Reply{}, errors.New("i/o timeout")
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := scripts.Eval(ctx, s, func(string, string) (driver.Reply, error) {
			t.Error("sent beside the first call")
			return driver.Reply{}, nil
		})
		check.Error(t, "Eval", err, driver.ErrNotSent, context.DeadlineExceeded)
		start := time.Now()
		if _, err := scripts.Eval(t.Context(), s, func(string, string) (driver.Reply, error) { return driver.NewReply(1) }); err != nil {
			t.Errorf("Eval beside a first call that hangs: %v", err)
		}
		check.Took(t, "waiting for a first call that hangs", start, 200*time.Millisecond)
		start = time.Now()
		_, err = scripts.Eval(t.Context(), s, func(string, string) (driver.Reply, error) { return driver.NewReply(1) })
		check.OK(t, err)
		check.Took(t, "a call after one that found out", start, 0)
		time.Sleep(time.Minute)
		for range 2 { // its failure leaves it to the next
			if _, err := scripts.Eval(t.Context(), s, func(string, string) (driver.Reply, error) { return driver.NewReply(1) }); err != nil {
				t.Errorf("Eval: %v", err)
			}
		}
	})
}

// A script that the server does not know is sent by source, once.
func TestScriptCacheSendsSource(t *testing.T) {
	t.Parallel()
	cut := errors.New("EOF")
	noscript := adapter.NewServerError("NOSCRIPT No matching script. Please use EVAL.", cut)
	busy := adapter.NewServerError("BUSY Redis is busy running a script.", cut)
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
		var scripts adapter.ScriptCache
		r, err := scripts.Eval(t.Context(), s, func(command, body string) (driver.Reply, error) {
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

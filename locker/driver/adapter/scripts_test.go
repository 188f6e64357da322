package adapter_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // fake time
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var scripts adapter.ScriptCache
		s := driver.NewScript("return 1")
		go func() {
			_, _ = scripts.Eval(context.Background(), s, func(string, string) (driver.Reply, error) {
				time.Sleep(time.Minute) //nolint:forbidigo // fake time
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
		wantError(t, "Eval", err, driver.ErrNotSent, context.DeadlineExceeded)
		start := time.Now()
		if _, err := scripts.Eval(t.Context(), s, func(string, string) (driver.Reply, error) { return driver.NewReply(1) }); err != nil {
			t.Errorf("Eval beside a first call that hangs: %v", err)
		}
		if took := time.Since(start); took != 200*time.Millisecond {
			t.Errorf("waited %v for a first call that hangs, want 200ms", took)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		for range 2 {           // its failure leaves it to the next
			if _, err := scripts.Eval(t.Context(), s, func(string, string) (driver.Reply, error) { return driver.NewReply(1) }); err != nil {
				t.Errorf("Eval: %v", err)
			}
		}
	})
}

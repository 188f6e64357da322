package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A command abandoned before it was written is not executed afterwards, even if a hook takes its
// context away. The server refuses it, and its connection stays.
func TestAbandonedCommandIsNeverExecuted(t *testing.T) {
	t.Parallel()
	for kindName, kind := range kinds {
		for opName, operation := range map[string]func(context.Context, driver.Driver) error{
			"SetNX": operations["SetNX"], "Eval": operations["Eval"], "Evals": evals, "EvalAcked": operations["EvalAcked"],
		} {
			if opName == "EvalAcked" && kindName == "unknown" {
				continue // unsupported
			}
			t.Run(kindName+"/"+opName, func(t *testing.T) {
				t.Parallel()
				clients.Bubble(t, func(t *testing.T) {
					s := &strict{}
					f := &fake{answer: s.answer}
					client := kind(f.options())
					late := &lateHook{resume: make(chan struct{})}
					client.AddHook(hook(late.keep))
					if masters, ok := client.(*redis.ClusterClient); ok {
						masters.OnNewNode(func(node *redis.Client) { node.AddHook(hook(late.keep)) }) // EvalAcked goes there
					}
					drv := newDriver(t, client)
					if _, err := drv.SetNX(t.Context(), "warm", "v", time.Minute); err != nil {
						t.Fatal(err)
					}
					executed := s.executed.Load()
					late.on.Store(true)
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if err := operation(ctx, drv); !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, ctx.Err()) {
						t.Errorf("error %v, want ErrNotSent and %v", err, ctx.Err())
					}
					close(late.resume)
					synctest.Wait()
					late.on.Store(false)
					if n := s.executed.Load() - executed; n != 0 {
						t.Errorf("%d commands were executed after their caller had left", n)
					}
					if s.refused.Load() == 0 {
						t.Error("the abandoned command has not come to the server: the test shows nothing")
					}
					check.Equal(t, "abandoned scripts sent again by source", f.count("EVAL"), 0)
					if open, dialed := f.conns.Load(), f.dialed.Load(); open != dialed {
						t.Errorf("%d of %d connections are still open, want all", open, dialed)
					}
					if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); err != nil {
						t.Errorf("afterwards: %v", err)
					}
				})
			})
		}
	}
}

// strict answers the driver's commands like a server, and checks their words.
type strict struct{ executed, refused atomic.Int32 }

func (s *strict) answer(words []string) string {
	refusal := ""
	switch name := strings.ToUpper(words[0]); {
	case name == "COMMAND":
		return "*0\r\n"
	case name == "SET" && len(words) > 3 && words[3] != "NX":
		refusal = "-ERR syntax error\r\n"
	case name == "EVALSHA" && words[1] != testScript.Digest():
		refusal = "-NOSCRIPT No matching script. Please use EVAL.\r\n"
	case name == "EVAL" && words[1] != testScript.Source():
		refusal = "-ERR Error compiling script\r\n"
	case name == "WAIT" && words[1] == "-":
		refusal = "-ERR value is not an integer or out of range\r\n"
	}
	if refusal != "" {
		s.refused.Add(1)
		return refusal
	}
	s.executed.Add(1)
	return "+OK\r\n"
}

// A server refuses each command of an abandoned call, and nothing more is sent.
func TestServerRefusesAbandonedCommand(t *testing.T) {
	t.Parallel()
	type test struct {
		operation string
		late      string // the first delayed command of the operation
		want      string
	}
	check.Each(t, map[string]test{
		"option":             {"SetNX", "set", "ERR syntax error"},
		"digest":             {"Eval", "evalsha", "NOSCRIPT "},
		"source":             {"Eval", "eval", "ERR Error compiling script"},
		"digest with a WAIT": {"EvalAcked", "evalsha", "NOSCRIPT "},
		"source with a WAIT": {"EvalAcked", "eval", "ERR Error compiling script"},
	}, func(t *testing.T, tt test) {
		server := redistest.Start(t, redistest.Options{})
		var dialed atomic.Int32
		client := redis.NewClient(&redis.Options{
			Addr:      server.Addr(),
			OnConnect: func(context.Context, *redis.Conn) error { dialed.Add(1); return nil },
		})
		late := &lateHook{only: tt.late, held: make(chan struct{}), resume: make(chan struct{}), done: make(chan []error, 1)}
		late.on.Store(true)
		client.AddHook(hook(late.keep))
		drv := newDriver(t, client)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() {
			<-late.held
			leave()
		}()
		if err := operations[tt.operation](ctx, drv); !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want ErrNotSent and Canceled", err)
		}
		close(late.resume)
		errs := <-late.done
		if err := errs[0]; err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("the server replied %v, want an error %q", err, tt.want)
		}
		for i, err := range errs {
			if err == nil {
				t.Errorf("command %d of %d was executed", i, len(errs))
			}
		}
		check.Equal[any](t, "keys written", server.MustCommand(t, "DBSIZE"), int64(0))
		stats := fmt.Sprint(server.MustCommand(t, "INFO", "commandstats"))
		if tt.late != "eval" && strings.Contains(stats, "cmdstat_eval:") {
			t.Error("an abandoned script was sent again by source")
		}
		late.on.Store(false)
		before := dialed.Load()
		check.Error(t, "afterwards", operations[tt.operation](t.Context(), drv))
		check.Equal(t, "connections dialed again", dialed.Load()-before, 0)
	})
}

// lateHook, while on, keeps commands until resume is closed, and then sends them under a context
// that never ends.
type lateHook struct {
	on     atomic.Bool
	resume chan struct{}

	only string        // the name of the delayed commands; empty: all
	held chan struct{} // if not nil, closed when the first is kept
	done chan []error  // if not nil, gets the errors of each delayed batch
}

func (h *lateHook) keep(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error {
	if !h.on.Load() || h.only != "" && h.only != cmds[0].Name() {
		return send(ctx)
	}
	for _, cmd := range cmds {
		_ = cmd.String() // as a log would
	}
	if h.held != nil {
		close(h.held)
	}
	<-h.resume
	err := send(context.WithoutCancel(ctx))
	if h.done != nil {
		errs := make([]error, len(cmds))
		for i, cmd := range cmds {
			errs[i] = cmd.Err()
		}
		if len(cmds) == 1 {
			errs[0] = err // the client has not set it yet
		}
		h.done <- errs
	}
	return err
}

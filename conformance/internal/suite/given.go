package suite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
)

// Result is the result of one case on a server in use by others.
type Result struct {
	Case    *Case
	LeftOut string // why it was not run, or not to its end; empty: it was run
	Failed  bool
	Lines   []string // its reports
	Took    time.Duration
}

// whyNotGiven returns why c cannot run on a single server in use by others, or "".
func (s *Suite) whyNotGiven(c *Case) string {
	switch {
	case slices.ContainsFunc(c.Needs, s.Lacking):
		return fmt.Sprintf("the adapter lacks one of %v", c.Needs)
	case c.Nodes > 0:
		return fmt.Sprintf("it needs %d servers that share nothing", c.Nodes)
	case c.inFakeTime():
		return "it needs fake time"
	case slices.Equal(c.On, Simulated):
		return "it needs a simulated server"
	case !slices.Contains(c.On, Single):
		return fmt.Sprintf("it needs another kind of server: %v", c.On)
	case c.Own:
		return "it stops, freezes, flushes or reconfigures the server"
	default:
		return ""
	}
}

// RunAt runs the cases on a single server in use by others, a few at once, and reports each when it
// has ended, one at a time. pick chooses cases by name; nil chooses all. Cases that would disturb
// the others are left out. At the end RunAt removes all keys of the cases. It returns an error if
// it cannot, or if a case left keys it should not have left.
func (s *Suite) RunAt(ctx context.Context, target Target, pick func(name string) bool, report func(Result)) error {
	if err := s.Check(); err != nil {
		return err
	}
	if target.Kind != Single || len(target.Addrs) != 1 {
		return fmt.Errorf("conformance: a target of kind %q with %d addresses: %w: want one server", target.Kind, len(target.Addrs), errors.ErrUnsupported)
	}
	srv := &Server{Target: target, Given: true}
	if _, err := srv.Do(ctx, "", "PING"); err != nil {
		return fmt.Errorf("conformance: %s: %w", target.Addrs[0], err)
	}
	var mu sync.Mutex
	var made, tidy census // of all cases, and of those that must leave no key
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range s.Cases {
		c := &s.Cases[i]
		if pick != nil && !pick(c.Name) {
			continue
		}
		if why := s.whyNotGiven(c); why != "" {
			mu.Lock()
			report(Result{Case: c, LeftOut: why})
			mu.Unlock()
			continue
		}
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			begin := time.Now()
			var t *T
			r := Record(ctx, c.Name, func(tb testing.TB) {
				t = newT(tb, s, srv)
				c.Run(t)
			})
			result := Result{Case: c, Failed: r.Failed(), Lines: r.Lines(), Took: time.Since(begin)}
			if r.Skipped() && !r.Failed() {
				result.LeftOut = r.First()
			}
			mu.Lock()
			defer mu.Unlock()
			made.add(&t.made)
			if !c.LeavesKeys && !r.Failed() && !r.Skipped() {
				tidy.add(&t.made)
			}
			if ctx.Err() == nil {
				report(result)
			}
		})
	}
	wg.Wait()
	return srv.tidyUp(context.WithoutCancel(ctx), &made, &tidy, s.isCounter)
}

// add adds the keys of another census.
func (c *census) add(other *census) {
	other.mu.Lock()
	defer other.mu.Unlock()
	c.keys = append(c.keys, other.keys...)
	for key := range other.foreign {
		c.wroteHere(key)
	}
}

// tidyUp removes the keys of made, and returns an error if any of tidy were left.
func (s *Server) tidyUp(ctx context.Context, made, tidy *census, isCounter func(string) bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := Connect(ctx, s.Target)
	if err != nil {
		return fmt.Errorf("conformance: keys that begin with \"conformance.\" may be left: %w", err)
	}
	defer conn.Close()
	found, err := scan(conn, "*conformance.*")
	if err != nil {
		return fmt.Errorf("conformance: keys that begin with \"conformance.\" may be left: %w", err)
	}
	all := (&census{keys: made.keys}).stray(found)
	left := tidy.stray(slices.Clone(all))
	left = slices.DeleteFunc(left, func(key string) bool {
		return isCounter(key) || endsSoon(conn, key)
	})
	for _, key := range all {
		if _, err := conn.Do("DEL", key); err != nil {
			return fmt.Errorf("conformance: the key %q is left: %w", key, err)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("conformance: cases left the keys %q, which were removed now", left)
	}
	return nil
}

// endsSoon reports whether a key is gone or ends by itself within seconds, as the place of a woken
// waiter does.
func endsSoon(conn *resp.Conn, key string) bool {
	reply, err := conn.Do("PTTL", key)
	ms, _ := reply.(int64)
	return err == nil && ms != -1 && ms < 5000
}

// scan returns the keys that match a pattern. It looks for them in small steps, and so never blocks
// the server.
func scan(conn *resp.Conn, pattern string) (found []string, err error) {
	for cursor := "0"; ; {
		reply, err := conn.Do("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
		if err != nil {
			return nil, err
		}
		step, _ := reply.([]any)
		if len(step) != 2 {
			return nil, fmt.Errorf("SCAN replied %v", reply)
		}
		keys, _ := step[1].([]any)
		for _, key := range keys {
			found = append(found, fmt.Sprint(key))
		}
		if cursor = fmt.Sprint(step[0]); cursor == "0" {
			return found, nil
		}
	}
}

package adapter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// loadPatience is how long a call waits while another one loads the same script.
const loadPatience = 200 * time.Millisecond

// scriptCache runs scripts by digest, and by source only after NOSCRIPT. It remembers the server's
// scripts, so that only one of many concurrent callers sends a source. It does not distinguish
// servers: with several of them more callers may send the source. The zero scriptCache is ready to
// use.
type scriptCache struct {
	mu     sync.RWMutex
	loaded map[*driver.Script]bool          // answered by digest, or by source
	first  map[*driver.Script]chan struct{} // in its first call; closed at its end
}

// eval runs s at most once: by digest, and by source only after NOSCRIPT. send sends one command,
// EVALSHA or EVAL, with body (the digest or the source) as its first argument.
//
// While one caller runs s for the first time, or for the first time after the server forgot it, the
// others wait for up to 200 ms and then send the digest. If ctx ends meanwhile, nothing was sent
// and the error matches [driver.ErrNotSent].
func (c *scriptCache) eval(ctx context.Context, s *driver.Script,
	send func(command, body string) (driver.Reply, error)) (driver.Reply, error) {
	for range 2 {
		leads, err := c.enter(ctx, s)
		if err != nil {
			return driver.Reply{}, err
		}
		if leads {
			return c.load(s, send)
		}
		r, err := send("EVALSHA", s.Digest())
		if err == nil || driver.CodeOf(err) != "NOSCRIPT" {
			if executed(err) {
				c.know(s) // even if the loading caller gets no answer
			}
			return r, err
		}
		c.forget(s)
	}
	return evalOnce(s, send)
}

// enter waits while another caller loads s. leads reports whether this caller must load it.
func (c *scriptCache) enter(ctx context.Context, s *driver.Script) (leads bool, err error) {
	c.mu.RLock()
	loaded := c.loaded[s]
	c.mu.RUnlock()
	if loaded {
		return false, nil
	}
	timer := time.NewTimer(loadPatience)
	defer timer.Stop()
	for {
		c.mu.Lock()
		first := c.first[s]
		switch {
		case c.loaded[s]:
			c.mu.Unlock()
			return false, nil
		case first == nil:
			if c.first == nil {
				c.first, c.loaded = map[*driver.Script]chan struct{}{}, map[*driver.Script]bool{}
			}
			c.first[s] = make(chan struct{})
			c.mu.Unlock()
			return true, nil
		}
		c.mu.Unlock()
		select {
		case <-first:
		case <-timer.C: // its connection may be dead
			return false, nil
		case <-ctx.Done():
			return false, driver.NotSent(ctx.Err())
		}
	}
}

// load runs s for the first time. It releases the waiting callers even if send panics.
func (c *scriptCache) load(s *driver.Script,
	send func(command, body string) (driver.Reply, error)) (r driver.Reply, err error) {
	loaded := false
	defer func() { c.leave(s, loaded) }()
	r, err = evalOnce(s, send)
	loaded = executed(err)
	return r, err
}

// executed reports whether a script with the error err was executed: its server knows it.
func executed(err error) bool {
	_, waited := errors.AsType[*driver.WaitError](err)
	return err == nil || waited || driver.CodeOf(err) != "" && !driver.NotExecuted(err)
}

// leave ends the first call of s.
func (c *scriptCache) leave(s *driver.Script, loaded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if loaded {
		c.loaded[s] = true
	}
	close(c.first[s])
	delete(c.first, s)
}

// know adds s to the server's scripts.
func (c *scriptCache) know(s *driver.Script) {
	c.mu.RLock()
	known := c.loaded[s]
	c.mu.RUnlock()
	if !known {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.loaded[s] = true // enter made the map
	}
}

// forget removes s from the server's scripts.
func (c *scriptCache) forget(s *driver.Script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loaded, s)
}

// evalOnce runs s by digest, and by source if the server answers NOSCRIPT, as it does after a
// failover: scripts are not replicated.
func evalOnce(s *driver.Script, send func(command, body string) (driver.Reply, error)) (driver.Reply, error) {
	r, err := send("EVALSHA", s.Digest())
	if err != nil && driver.CodeOf(err) == "NOSCRIPT" {
		return send("EVAL", s.Source())
	}
	return r, err
}

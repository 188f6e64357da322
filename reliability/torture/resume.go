package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
)

// passedOn keeps of each name the hold that was passed on last. It stays there when it was taken,
// so that several try. Clients of all processes reach it by lines of fields with tabs between them:
// "pass name hold handle" is answered by "ok", "take name" by "hold handle", or "none".
type passedOn struct {
	mu     sync.Mutex
	byName map[string]string
}

const none = "none"

// answer answers a line, if it is one of these.
func (p *passedOn) answer(line string) (string, bool) {
	verb, rest, tabs := strings.Cut(line, "\t")
	if !tabs {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name, hold, _ := strings.Cut(rest, "\t")
	if verb == "take" {
		if found, ok := p.byName[name]; ok {
			return found, true
		}
		return none, true
	}
	if p.byName == nil {
		p.byName = map[string]string{}
	}
	p.byName[name] = hold
	return "ok", true
}

// ask sends a line, and returns the answer.
func (s *storeClient) ask(fields ...string) (string, error) {
	if _, err := fmt.Fprintln(s.conn, strings.Join(fields, "\t")); err != nil {
		return "", err
	}
	if !s.lines.Scan() {
		return "", fmt.Errorf("the store is gone: %w", s.lines.Err())
	}
	return s.lines.Text(), nil
}

// resumes reports whether the client's strategy knows resumes.
func (c *client) resumes() bool { return !strategies[c.Strategy].flawed }

// passOn lets others take the hold over, now and then. The client goes on with it, and is not told.
func (c *client) passOn(h *history.Hold) {
	if !c.resumes() || !c.oneIn(4) {
		return
	}
	p := h.Pass()
	_, _ = c.store.ask("pass", h.Name(), p.Hold, p.Handle) // a store that is gone has no parent either
}

// takeOver takes a hold over that was passed on, by whichever client of whichever process, now and
// then. nil: it did not.
func (c *client) takeOver(ctx context.Context, name string) *history.Hold {
	if !c.resumes() || !c.oneIn(10) {
		return nil
	}
	found, err := c.store.ask("take", name)
	if err != nil || found == none {
		return nil
	}
	hold, handle, _ := strings.Cut(found, "\t")
	ctx, cancel := c.limited(ctx, 20*time.Millisecond+c.upTo(time.Second))
	defer cancel()
	if c.oneIn(10) { // given up at any instant
		time.AfterFunc(c.upTo(5*time.Millisecond), cancel)
	}
	h, _ := c.h.Resume(ctx, c.l, history.Passed{Hold: hold, Handle: handle})
	return h
}

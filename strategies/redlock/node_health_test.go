package redlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	const patience = time.Second
	start := time.Now()
	down := errors.New("connection refused")
	type call struct {
		at  time.Duration
		err error
	}
	for name, tt := range map[string]struct {
		calls []call
		fails bool
		since time.Duration
	}{
		"never asked":                 {},
		"the first call fails":        {[]call{{0, down}}, true, 0},
		"one failure among others":    {[]call{{0, nil}, {time.Second, down}, {time.Second, nil}, {2 * time.Second, down}}, false, 0},
		"no success for patience":     {[]call{{0, nil}, {time.Second, down}, {1001 * time.Millisecond, down}}, true, 1001 * time.Millisecond},
		"it goes on failing":          {[]call{{0, nil}, {2 * time.Second, down}, {3 * time.Second, down}}, true, 2 * time.Second},
		"it works again":              {[]call{{0, down}, {2 * time.Second, nil}}, false, 0},
		"a refusal is an answer":      {[]call{{0, down}, {2 * time.Second, &locker.ContentionError{}}}, false, 0},
		"so is a loss":                {[]call{{0, down}, {2 * time.Second, locker.ErrLost}}, false, 0},
		"a caller that left":          {[]call{{0, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, context.Canceled)}}, false, 0},
		"what the node has not":       {[]call{{0, errors.ErrUnsupported}}, false, 0},
		"an answer that did not come": {[]call{{0, locker.ErrUnknownOutcome}}, true, 0},
	} {
		var h nodeHealth
		for _, c := range tt.calls {
			h = h.after(start.Add(c.at), c.err, patience)
		}
		if (h.cause != nil) != tt.fails || tt.fails && !h.failing.Equal(start.Add(tt.since)) {
			t.Errorf("%s: cause %v since %v, want a failure: %v since %v", name, h.cause, h.failing.Sub(start), tt.fails, tt.since)
		}
	}
}

func TestNodeErrorNamesTheAddressOnce(t *testing.T) {
	t.Parallel()
	const addr = "127.0.0.1:1"
	for _, tt := range []struct{ name, address, cause, want string }{
		{"", "", "no answer yet", "node 1: no answer yet"},
		{addr, addr, "no answer yet", "node 1 (127.0.0.1:1): no answer yet"},
		{addr, addr, "dial tcp 127.0.0.1:1: connection refused", "node 1: dial tcp 127.0.0.1:1: connection refused"},
		{"west", addr, "no answer yet", "node 1 (west, 127.0.0.1:1): no answer yet"},
		{"west", addr, "dial tcp 127.0.0.1:1: connection refused", "node 1 (west): dial tcp 127.0.0.1:1: connection refused"},
		{"west", "", "no answer yet", "node 1 (west): no answer yet"},
	} {
		e := &NodeError{Node: 1, Name: tt.name, Address: tt.address, Err: errors.New(tt.cause)}
		check.Equal(t, "error", e.Error(), tt.want)
	}
}

// What is learned first is kept, and a lease that does not know its source hides nothing.
func TestFirstSourceIsKept(t *testing.T) {
	t.Parallel()
	n := &quorumNode{}
	for _, address := range []string{"", "first:1", "", "other:1"} {
		n.learn(locktrace.Source{Address: address})
	}
	check.Equal(t, "error, with the address learned first", n.error(errEnded).Error(), "node 0 (first:1): "+errEnded.Error())
}

package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// A hold passed on by a client can be taken by all others, until the next one is passed on.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	s := locker.Must(serveStore(t.TempDir()))
	defer s.close()
	dial := func() *storeClient {
		t.Helper()
		c := locker.Must(dialStore(s.addr()))
		t.Cleanup(func() { c.conn.Close() })
		return c
	}
	if p, ok := dial().Take("a name"); ok {
		t.Errorf("before: %q", p)
	}
	for _, hold := range []string{"1/1", "2/1"} {
		want := history.Passed{Hold: hold, Handle: "handle"}
		dial().Put("a name", want)
		for range 2 {
			if got, ok := dial().Take("a name"); !ok || got != want {
				t.Errorf("took %q, want %q", got, want)
			}
		}
	}
	if p, ok := dial().Take("another"); ok {
		t.Errorf("another name: %q", p)
	}
	if ok, err := dial().accept("a-name", 1); !ok || err != nil {
		t.Errorf("a write beside that: %v, %v", ok, err)
	}
}

package main

import "testing"

// A hold that one client passed on is there for all others, until the next one is.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	s, err := serveStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	ask := func(fields ...string) string {
		t.Helper()
		c, err := dialStore(s.addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.conn.Close()
		answer, err := c.ask(fields...)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if got := ask("take", "a name"); got != none {
		t.Errorf("before: %q", got)
	}
	for _, hold := range []string{"1/1", "2/1"} {
		if got := ask("pass", "a name", hold, "handle"); got != "ok" {
			t.Errorf("pass: %q", got)
		}
		for range 2 {
			if got, want := ask("take", "a name"), hold+"\thandle"; got != want {
				t.Errorf("took %q, want %q", got, want)
			}
		}
	}
	if got := ask("take", "another"); got != none {
		t.Errorf("another name: %q", got)
	}
	c, err := dialStore(s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	if ok, err := c.accept("a-name", 1); !ok || err != nil {
		t.Errorf("a write beside that: %v, %v", ok, err)
	}
}

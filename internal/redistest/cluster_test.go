package redistest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestSlot(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 1, redistest.Options{})
	for _, key := range []string{"", "a", "123456789", "{a}b", "{}a", "x{a}{b}", "{{a}}", "a}b", "{a", "é{ü}"} {
		if got, want := int64(redistest.Slot(key)), c.Nodes()[0].MustCommand(t, "CLUSTER", "KEYSLOT", key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
}

// keysIn returns n keys of a slot.
func keysIn(slot, n int) []string {
	var keys []string
	for i := 0; len(keys) < n; i++ {
		if k := fmt.Sprintf("key:%d", i); redistest.Slot(k) == slot {
			keys = append(keys, k)
		}
	}
	return keys
}

func wantServerError(t *testing.T, err error, prefix string) {
	t.Helper()
	var se redistest.ServerError
	if !errors.As(err, &se) || !strings.HasPrefix(string(se), prefix) {
		t.Errorf("error %v, want a server's %q", err, prefix)
	}
}

func TestClusterServesEverySlotAndMovesOne(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{})
	keys := keysIn(42, 2)
	from, to := c.NodeForSlot(42), c.Nodes()[2]
	if got := c.Nodes()[1].MustCommand(t, "CLUSTER", "KEYSLOT", keys[0]); got != int64(42) {
		t.Fatalf("KEYSLOT %v", got)
	}
	for _, k := range keys {
		from.MustCommand(t, "SET", k, "v")
	}
	_, err := to.Command("GET", keys[0])
	wantServerError(t, err, "MOVED 42 "+from.Addr())

	m, err := c.BeginMove(t.Context(), 42, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Migrate(t.Context(), keys[0]); err != nil {
		t.Fatal(err)
	}
	_, err = from.Command("GET", keys[0])
	wantServerError(t, err, "ASK 42 "+to.Addr())
	_, err = from.Command("MGET", keys[0], keys[1])
	wantServerError(t, err, "TRYAGAIN ")
	if err := m.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if got := to.MustCommand(t, "GET", k); got != "v" {
			t.Errorf("GET %s at the new owner: %v", k, got)
		}
	}
	_, err = from.Command("GET", keys[0])
	wantServerError(t, err, "MOVED 42 "+to.Addr())
	if c.NodeForKey(keys[0]) != to {
		t.Error("NodeForKey still gives the old owner")
	}
}

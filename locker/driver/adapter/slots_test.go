package adapter

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

func TestSlots(t *testing.T) {
	t.Parallel()
	master := func(id string) []any { return []any{"10.0.0.1", int64(7000), id} }
	s := parseSlots([]any{
		[]any{int64(100), int64(199), master("b"), master("replica")},
		[]any{int64(0), int64(99), []any{[]byte("10.0.0.1"), int64(7000), []byte("a")}},
		[]any{int64(300), int64(300), []any{"", int64(7000), "hidden"}},
		[]any{int64(12182), int64(12182), []any{"::1", int64(7000)}},
		[]any{int64(16383), int64(16384), master("past the end")},
		[]any{int64(5), int64(4), master("backwards")},
		[]any{int64(400), int64(401)},
		[]any{int64(402), int64(403), []any{}},
		[]any{"404", int64(405), master("text")},
		"nonsense",
	})
	if len(s) != 4 {
		t.Fatalf("%d ranges, want 4: %v", len(s), s)
	}
	for slot, want := range map[uint16]string{
		0: "a 10.0.0.1:7000", 50: "a 10.0.0.1:7000", 99: "a 10.0.0.1:7000", 100: "b 10.0.0.1:7000", 199: "b 10.0.0.1:7000", 200: " ", 299: " ",
		300: "hidden ", 301: " ", 404: " ", 16383: " ",
	} {
		r, found := s.find(slot)
		if got := r.id + " " + r.addr; got != want || found != (want != " ") {
			t.Errorf("slot %d is at %q, %t; want %q", slot, got, found, want)
		}
	}
	if r, _ := s.of("a{foo}b"); r.id != "[::1]:7000" { // as CLUSTER KEYSLOT foo
		t.Errorf("the slot of {foo} is at %q", r.id)
	}
	for _, reply := range []any{nil, "", int64(1), []any{}} {
		if got := parseSlots(reply); got != nil {
			t.Errorf("%s: %v, want nothing", fmt.Sprint(reply), got)
		}
	}
}

// Keys of one slot share a pipeline; the slots are those of CLUSTER KEYSLOT.
func TestSlotPipelines(t *testing.T) {
	t.Parallel()
	pipelines := NewSlotPipelines(Client{Send: func(context.Context, []*Command) {}})
	defer pipelines.Close()
	for key, slot := range map[string]int{
		"": 0, "foo": 12182, "{foo}:fence": 12182, "x{foo}y{z}": 12182, "123456789": 12739, "{}foo": 9500,
	} {
		check.Equal(t, fmt.Sprintf("%q has the pipeline of slot %d", key, slot), pipelines.To(key) == pipelines.(*slotPipelines)[slot/256], true)
	}
}

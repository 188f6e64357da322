package driver_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestReplyPart(t *testing.T) {
	t.Parallel()
	list, err := driver.NewReply([]any{int64(1), "x", nil})
	check.Must(t, err)
	one, err := driver.NewReply("x")
	check.Must(t, err)
	for _, tt := range []struct {
		r    driver.Reply
		i, n int
		want []any // nil: an error
	}{
		{list, 0, 3, []any{int64(1), "x", nil}},
		{list, 1, 1, []any{"x"}},
		{list, 3, 0, []any{}},
		{one, 0, 1, []any{"x"}},
		{list, 2, 2, nil},
		{list, 4, 0, nil},
		{list, -1, 1, nil},
		{list, 1, -1, nil},
		{list, 1, math.MaxInt, nil},
		{one, 0, 2, nil},
	} {
		part, err := tt.r.Part(tt.i, tt.n)
		if (err == nil) != (tt.want != nil) {
			t.Errorf("Part(%d, %d): %v, want %v", tt.i, tt.n, err, tt.want)
		} else if err == nil {
			checkReply(t, part, tt.want)
		}
	}
}

// checkReply checks that r has exactly the values want.
func checkReply(t *testing.T, r driver.Reply, want []any) {
	t.Helper()
	if r.Len() != len(want) {
		t.Fatalf("Len %d, want %d", r.Len(), len(want))
	}
	for i := -1; i <= len(want); i++ {
		var value any = errors.New("no such value")
		if i >= 0 && i < len(want) {
			value = want[i]
		}
		n, isInt := value.(int64)
		if got, err := r.Int(i); isInt != (err == nil) || got != n {
			t.Errorf("Int(%d): %d, %v; value is %v", i, got, err, value)
		}
		s, isText := value.(string)
		if got, err := r.Text(i); isText != (err == nil) || got != s {
			t.Errorf("Text(%d): %q, %v; value is %v", i, got, err, value)
		}
		if got := r.IsNil(i); got != (value == nil) {
			t.Errorf("IsNil(%d): %v; value is %v", i, got, value)
		}
	}
}

func TestReplyRefuses(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]any{
		"float":            1.5,
		"bool":             true,
		"uint64":           uint64(1),
		"error":            errors.New("ERR in a list"),
		"list of strings":  []string{"a"},
		"nested list":      []any{int64(1), []any{"a"}},
		"map":              map[string]any{"a": 1},
		"error in a list":  []any{errors.New("WRONGTYPE")},
		"pointer to int64": new(int64),
	}, func(t *testing.T, in any) {
		r, err := driver.NewReply(in)
		if err == nil {
			t.Fatalf("NewReply(%v) = %v, want an error", in, r)
		}
		checkReply(t, r, []any{nil})
	})
	_, err := driver.NewReply([]any{nil, []any{}})
	if err == nil || !strings.Contains(err.Error(), "item 1") {
		t.Errorf("error %v does not say which item", err)
	}
}

// A client may reuse its buffer.
func TestReplyKeepsNoBuffer(t *testing.T) {
	t.Parallel()
	buf := []byte("token")
	one, _ := driver.NewReply(buf)
	list, _ := driver.NewReply([]any{buf})
	copy(buf, "XXXXX")
	for _, r := range []driver.Reply{one, list} {
		if got, err := r.Text(0); got != "token" {
			t.Errorf("Text after the buffer changed: %q, %v", got, err)
		}
	}
}

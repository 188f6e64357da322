package redisson

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestValue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ö", 512)
	for _, want := range [][2]string{{}, {"me"}, {"", "why"}, {"a|b:c", "1 2:d%"}, {"\x00\xff", "\n~"}, {long, long}} {
		value := newValue(want[0], want[1], 1)
		for _, stored := range []string{value, "~" + value} {
			owner, note := parseValue(stored)
			check.Equal(t, fmt.Sprintf("owner and note of %.80q", stored), [2]string{owner, note}, want)
		}
		check.AtMost(t, "length", len(value), maxValue)
	}
	id := lease.NewToken() + ":1"
	for _, value := range []string{
		"", id + "|", id + "|me", id + "|me|why|x", id + "|%6de|", id + "|%|", id + "|a b|", "x:1|me|why", id + "1|me|why",
		"2f1c0e5a-8d8e-4f43-9a41-7f8d6b7f0c11:1|me|why", lease.NewToken() + "|me|why", "~~" + id + "|me|why",
	} {
		owner, note := parseValue(value)
		check.Equal(t, fmt.Sprintf("owner and note of %q", value), owner+note, "")
	}
}

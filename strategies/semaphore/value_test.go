package semaphore

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
	for _, want := range []hold{
		{1, "", ""}, {3, "me", ""}, {MaxPermits, "", "why"}, {2, "a b:c", "1 2:d"}, {1, "\x00\xff", "\n"}, {7, long, long},
	} {
		check.Equal(t, "hold", parse(newValue(want.owner, want.note, want.permits)), want)
	}
	token := lease.NewToken()
	for _, value := range []string{
		"", token, token + " ", token + " 1", token + " 1 0", token + " 0 0:", token + " -1 0:", token + " 1 1:", token + " 1 -1:x",
		token + " 01 0:", token + " 1 00:", token + " 1000000001 0:", token + "  1 0:", "x 1 0:", token + "x 1 0:",
		token + " 1 0:" + long + "x", token + " 1 1025:" + long + "x",
	} {
		check.Equal(t, fmt.Sprintf("%.60q", value), parse(value), hold{})
	}
}

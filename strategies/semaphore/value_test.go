package semaphore

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestValue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ö", 512)
	for _, want := range []hold{
		{1, "", ""}, {3, "me", ""}, {MaxPermits, "", "why"}, {2, "a b:c", "1 2:d"}, {1, "\x00\xff", "\n"}, {7, long, long},
	} {
		if got := parse(newValue(want.owner, want.note, want.permits)); got != want {
			t.Errorf("%+v became %+v", want, got)
		}
	}
	token := lease.NewToken()
	for _, value := range []string{
		"", token, token + " ", token + " 1", token + " 1 0", token + " 0 0:", token + " -1 0:", token + " 1 1:", token + " 1 -1:x",
		token + " 01 0:", token + " 1 00:", token + " 1000000001 0:", token + "  1 0:", "x 1 0:", token + "x 1 0:",
		token + " 1 0:" + long + "x", token + " 1 1025:" + long + "x",
	} {
		if got := parse(value); got != (hold{}) {
			t.Errorf("%.60q was read as %+v", value, got)
		}
	}
}

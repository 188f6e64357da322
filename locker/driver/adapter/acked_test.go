package adapter_test

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

func TestAckedReply(t *testing.T) {
	t.Parallel()
	refused := serverError("NOPERM no WAIT")
	for what, tt := range map[string]struct {
		reply   any
		err     error
		acked   any
		waitErr error

		want   int
		behind bool // a WaitError
		is     error
	}{
		"both answered":         {reply: "yes", acked: int64(2), want: 2},
		"nobody acknowledged":   {reply: nil, acked: int64(0)},
		"the script refused":    {err: refused, acked: int64(1), is: refused},
		"both lost":             {err: io.EOF, waitErr: io.ErrUnexpectedEOF, is: io.EOF},
		"a reply of no kind":    {reply: 1.5, acked: int64(1), is: errors.New("")},
		"the WAIT refused":      {reply: "yes", waitErr: refused, behind: true, is: refused},
		"the WAIT lost":         {reply: "yes", waitErr: io.EOF, behind: true, is: io.EOF},
		"the WAIT not answered": {reply: "yes", acked: "OK", behind: true, is: errors.New("")},
	} {
		reply, acked, err := adapter.AckedReply(tt.reply, tt.err, tt.acked, tt.waitErr)
		if (err == nil) != (tt.is == nil) || tt.is != nil && tt.is.Error() != "" && !errors.Is(err, tt.is) {
			t.Errorf("%s: error %v, want %v", what, err, tt.is)
		}
		if acked != tt.want || errors.As(err, new(*driver.WaitError)) != tt.behind {
			t.Errorf("%s: %d, %v", what, acked, err)
		}
		if text, _ := reply.Text(0); tt.is == nil && tt.reply == "yes" && text != "yes" {
			t.Errorf("%s: the reply is %q", what, text)
		}
	}
}

// A WAIT after NOSCRIPT takes time too; the two together take no longer than the timeout.
func TestScriptsEvalAckedWaitsNoLonger(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{0, 1200 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var waits []string
			var scripts adapter.ScriptCache
			_, acked, err := scripts.EvalAcked(t.Context(), driver.NewScript("return 1"), 2, 1500*time.Millisecond,
				func(command, _ string, wait [2]string) (driver.Reply, int, error) {
					waits = append(waits, command+" "+wait[0]+" "+wait[1])
					if command == "EVALSHA" {
						time.Sleep(took) //nolint:forbidigo // fake time
						return driver.Reply{}, 1, serverError("NOSCRIPT none")
					}
					return driver.Reply{}, 2, nil
				})
			left := strconv.FormatInt(max(1500-took.Milliseconds(), 1), 10)
			if want := []string{"EVALSHA 2 1500", "EVAL 2 " + left}; !slices.Equal(waits, want) || acked != 2 || err != nil {
				t.Errorf("after %v: %q, %d, %v; want %q", took, waits, acked, err, want)
			}
		})
	}
}

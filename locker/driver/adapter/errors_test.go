package adapter_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

func serverError(text string) error {
	return adapter.NewServerError(text, errors.New("the client's: "+text))
}

// How the ACL refuses a command within a script: Redis 7.2 and later and Valkey, Redis 7.0, Redis
// 6.2.
const (
	refusedInScript   = "ERR ACL failure in script: User app has no permissions to run the 'pexpireat' command"
	refusedInScript70 = "ERR The user executing the script can't run this command or subcommand script: ec22, on @user_script:1."
	refusedInScript62 = "ERR Error running script (call to f_ec22): @user_script:1: The user executing the script can't run this command or subcommand"
)

func TestServerError(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, text, code string }{
		{"WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE"},
		{"ERR unknown command", "ERR unknown command", "ERR"},
		{"unknown command 'X'", "ERR unknown command 'X'", "ERR"}, // "ERR " was stripped
		{"max number of clients reached", "ERR max number of clients reached", "ERR"},
		{"Error running script", "ERR Error running script", "ERR"},
		{"MOVED 3999 127.0.0.1:6381", "MOVED 3999 127.0.0.1:6381", "MOVED"},
		{"NOAUTH", "NOAUTH", "NOAUTH"},
		{"MY_CODE2 text", "MY_CODE2 text", "MY_CODE2"},
		{refusedInScript, refusedInScript, "NOPERM"},
		{refusedInScript70, refusedInScript70, "NOPERM"},
		{refusedInScript70[len("ERR "):], refusedInScript70, "NOPERM"},
		{refusedInScript62, refusedInScript62, "NOPERM"},
		{"", "ERR ", "ERR"},
		{" leading space", "ERR  leading space", "ERR"},
		{"moved lower", "ERR moved lower", "ERR"},
		{"READONLY\nscript", "ERR READONLY\nscript", "ERR"}, // not a code: a reply has one line
	}
	for _, tt := range tests {
		cause := errors.New("cause")
		err := adapter.NewServerError(tt.in, cause)
		if err.Text != tt.text || err.Code() != tt.code || !errors.Is(err, cause) {
			t.Errorf("NewServerError(%q): text %q, code %q, cause %v; want %q, %q", tt.in, err.Text, err.Code(), err.Err, tt.text, tt.code)
		}
		if got := driver.CodeOf(fmt.Errorf("wrapped: %w", err)); got != tt.code {
			t.Errorf("CodeOf(%q) = %q, want %q", tt.in, got, tt.code)
		}
		if got, want := err.Error(), "server error: "+tt.text; got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
	}
	for _, err := range []error{nil, io.EOF, errors.New("MOVED 1 a:1")} {
		if got := driver.CodeOf(err); got != "" {
			t.Errorf("CodeOf(%v) = %q, want none", err, got)
		}
	}
}

// Arguments that a server repeats are in no text, also not in the text of the client's error.
func TestServerErrorShowsNoArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"ERR unknown command 'EVALSHA', with args beginning with: 'e0a9' '1' 'job' 'secret|me' ", "ERR unknown command 'EVALSHA'"},
		{"ERR unknown command `EVALSHA`, with args beginning with: `e0a9`, `1`, `job`, `secret`, ", "ERR unknown command `EVALSHA`"},
		{"unknown command 'EVALSHA', with args beginning with: 'secret' ", "ERR unknown command 'EVALSHA'"}, // "ERR " was stripped
		{"ERR unknown command 'PING', with args beginning with: ", "ERR unknown command 'PING'"},
		{"ERR unknown command", "ERR unknown command"},
	} {
		for _, below := range []error{errors.New(tt.text), fmt.Errorf("hook: %w", errors.New(tt.text)), nil} {
			err := adapter.NewServerError(tt.text, below)
			shown := fmt.Sprintf("%v %+v %#v", err, err, err)
			if err.Err != nil {
				shown += fmt.Sprintf("%v %+v %#v", err.Err, err.Err, err.Err)
			}
			if err.Text != tt.want || strings.Contains(shown, "secret") {
				t.Errorf("%q over %v: text %q, want %q; shown: %s", tt.text, below, err.Text, tt.want, shown)
			}
			if (err.Err == nil) != (below == nil) {
				t.Errorf("%q over %v: the error below is %v", tt.text, below, err.Err)
			}
		}
	}
}

func TestDialFailed(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	read := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for _, tt := range []struct {
		err  error
		want bool
	}{{nil, false}, {io.EOF, false}, {read, false}, {dial, true}, {fmt.Errorf("above: %w", dial), true}, {fmt.Errorf("above: %w", read), false}} {
		if got := adapter.DialFailed(tt.err); got != tt.want {
			t.Errorf("DialFailed(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}

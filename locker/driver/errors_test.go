package driver_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func serverError(text string) error {
	return &driver.ServerError{Text: text, Err: errors.New("the client's: " + text)}
}

// How the ACL refuses a command within a script: Redis 7.2 and later and Valkey, Redis 7.0, Redis
// 6.2.
const (
	refusedInScript   = "ERR ACL failure in script: User app has no permissions to run the 'pexpireat' command"
	refusedInScript70 = "ERR The user executing the script can't run this command or subcommand script: ec22, on @user_script:1."
	refusedInScript62 = "ERR Error running script (call to f_ec22): @user_script:1: The user executing the script can't run this command or subcommand"
)

// A script stopped by the ACL may have written; a call refused as a whole has not.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{serverError(refusedInScript), true},
		{serverError(refusedInScript70), true},
		{serverError(refusedInScript62), true},
		{wrap(serverError(refusedInScript)), true},
		{serverError("NOPERM this user has no permissions to run the 'eval' command"), false},
		{serverError("NOPERM User app has no permissions to access the 'ACL failure in script' key"), false},
		{serverError("ERR unknown ACL failure in script"), false},
		{errors.New(refusedInScript), false},
	} {
		if got := driver.Interrupted(tt.err); got != tt.want {
			t.Errorf("Interrupted(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}

// alert returns crypto/tls's error for an alert of the server.
func alert(code tls.AlertError) error {
	return &net.OpError{Op: "remote error", Err: errors.New(code.Error())}
}

func TestOutcomeOfErrors(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	tests := []struct {
		err                    error
		notExecuted, transient bool
	}{
		{nil, false, false},

		// Refusals as servers send them.
		{serverError("MOVED 3999 127.0.0.1:6381"), true, true},
		{serverError("ASK 3999 127.0.0.1:6381"), true, true},
		{serverError("TRYAGAIN Multiple keys request during rehashing of slot"), true, true},
		{serverError("CLUSTERDOWN The cluster is down"), true, true},
		{serverError("READONLY You can't write against a read only replica."), true, true},
		{serverError("LOADING Redis is loading the dataset in memory"), true, true},
		{serverError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), true, true},
		{serverError("OOM command not allowed when used memory > 'maxmemory'."), true, true},
		{serverError("NOREPLICAS Not enough good replicas to write."), true, true},
		{serverError("BUSY Redis is busy running a script. You can only call SCRIPT KILL."), true, true},
		{serverError("NOSCRIPT No matching script. Please use EVAL."), true, true},
		{serverError("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."), true, true},
		{serverError("NOPERM this user has no permissions to run the 'eval' command"), true, false},
		{serverError(refusedInScript), false, false},
		{serverError(refusedInScript70), false, false},
		{serverError(refusedInScript62), false, false},
		{serverError("NOAUTH Authentication required."), true, false},
		{serverError("WRONGPASS invalid username-password pair or user is disabled."), true, false},
		{serverError("WRONGTYPE Operation against a key holding the wrong kind of value"), true, false},
		{serverError("NOREPLICAS"), true, true},
		{serverError("CROSSSLOT Keys in request don't hash to the same slot"), true, false},
		{serverError("DENIED Redis is running in protected mode because protected mode is enabled"), true, false},
		{serverError("ERR unknown command 'EVALSHA', with args beginning with: 'e0a9' '1' 'job' "), true, false},
		{serverError("ERR unknown command `EVALSHA`, with args beginning with: `e0a9`, `1`, `job`, "), true, false},
		{serverError("ERR Protocol error: unauthenticated multibulk length"), true, false},
		{serverError("ERR Protocol error: unauthenticated bulk length"), true, false},
		{serverError("ERR Protocol error: expected '$', got ' '"), false, false},
		{serverError("ERR max number of clients reached"), true, true},
		{serverError("ERR max number of clients + cluster connections reached"), true, true},
		{driver.NotSent(serverError("ERR max number of clients reached")), true, true},

		// Texts that only resemble them.
		{serverError("ERR MOVED"), false, false},
		{serverError("BUSYKEY Target key name already exists."), false, false},
		{serverError("BUSYGROUP Consumer Group name already exists"), false, false},
		{serverError("EXECABORT Transaction discarded because of previous errors."), false, false},
		{serverError("UNKILLABLE Sorry the script already executed write commands"), false, false},
		{serverError("moved 1 a:1"), false, false},
		{serverError("DENIED"), true, false},

		// A command of a script, in Redis 6.2.
		{serverError("ERR Error running script (call to f_ec22): @user_script:1: @user_script: 1: -OOM command not allowed"), true, true},
		{serverError("ERR Error running script (call to f_ec22): @user_script:1: @user_script: 1: -READONLY You can't write"), true, true},
		{serverError("ERR Error running script (call to f_ec22): @user_script:1: @user_script: 1: -WRONGTYPE Operation against"), true, false},
		{serverError("ERR Error running script (call to f_ec22): @user_script:1: bad argument: -1 OOM"), false, false},
		{serverError("ERR no script: -OOM command not allowed"), false, false},

		// Replies possible after a script's write.
		{serverError("ERR Unknown Redis command called from script script: ec22, on @user_script:1."), false, false},
		{serverError("ERR wrong number of arguments for 'hset' command script: ec22, on @user_script:1."), false, false},
		{serverError("ERR wrong number of arguments for 'set' command"), false, false},
		{serverError("ERR value is not an integer or out of range"), false, false},
		{serverError("ERR Script attempted to access keys that do not hash to the same slot script: ec22, on @user_script:1."), false, false},
		{errors.New("READONLY said somebody else"), false, true},

		// Transport errors: the command may have been executed.
		{io.EOF, false, true},
		{io.ErrUnexpectedEOF, false, true},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, false, true},
		{&net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}, false, true},
		{dial, false, true}, // the adapter knows whether it dialed
		{context.DeadlineExceeded, false, true},
		{context.Canceled, false, true},

		// TLS: one side refuses the other, or the connection breaks.
		{alert(116), true, false}, // certificate_required
		{alert(48), true, false},  // unknown_ca
		{driver.NotSent(&tls.CertificateVerificationError{Err: errors.New("unknown authority")}), true, false},
		{alert(80), false, true}, // internal_error
		{alert(20), false, true}, // bad_record_mac
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false, true},

		// Never sent.
		{driver.NotSent(dial), true, true},
		{driver.NotSent(context.Canceled), true, true},
		{driver.ErrNotSent, true, true},
		{driver.ErrClosed, true, false},
		{driver.NotSent(driver.ErrClosed), true, false},

		// Errors of the WAIT after an executed script.
		{&driver.WaitError{Err: io.EOF}, false, true},
		{&driver.WaitError{Err: driver.NotSent(io.EOF)}, false, true},
		{&driver.WaitError{Err: serverError("ERR WAIT cannot be used with replica instances.")}, false, true},
		{&driver.WaitError{Err: serverError("UNBLOCKED force unblock from blocking operation")}, false, true},
		{&driver.WaitError{Err: serverError("NOPERM this user has no permissions to run the 'wait' command")}, false, false},
		{&driver.WaitError{Err: serverError("ERR unknown command 'WAIT'")}, false, false},
		{&driver.WaitError{Err: serverError("ERR max number of clients reached")}, false, true},

		// Errors of this module.
		{&driver.InvalidError{What: "what", Got: "got", Allowed: "allowed"}, false, false},
		{errors.ErrUnsupported, false, false},
		{driver.NotSent(errors.ErrUnsupported), true, false},
	}
	for _, tt := range tests {
		for _, err := range []error{tt.err, wrap(tt.err)} {
			if got := driver.NotExecuted(err); got != tt.notExecuted {
				t.Errorf("NotExecuted(%v) = %v, want %v", err, got, tt.notExecuted)
			}
			if got := driver.Transient(err); got != tt.transient {
				t.Errorf("Transient(%v) = %v, want %v", err, got, tt.transient)
			}
		}
	}
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("above: %w", err)
}

func TestNotSent(t *testing.T) {
	t.Parallel()
	if err := driver.NotSent(nil); err != nil {
		t.Errorf("NotSent(nil) = %v, want nil", err)
	}
	err := driver.NotSent(io.EOF)
	check.Error(t, "NotSent(EOF)", err, driver.ErrNotSent, io.EOF)
	if errors.Is(io.EOF, driver.ErrNotSent) || errors.Is(err, driver.ErrClosed) {
		t.Error("EOF by itself is not sent, or what is not sent is closed")
	}
	for _, marked := range []error{err, wrap(err), driver.ErrNotSent, driver.ErrClosed} {
		if got := driver.NotSent(marked); got != marked { //nolint:errorlint // the very error
			t.Errorf("NotSent(%v) = %v, want it as it is", marked, got)
		}
	}
	check.Error(t, "ErrClosed", driver.ErrClosed, driver.ErrNotSent)
	if errors.Is(driver.ErrNotSent, driver.ErrClosed) {
		t.Error("what is not sent is closed")
	}
}

func TestInvalidError(t *testing.T) {
	t.Parallel()
	err := wrap(&driver.InvalidError{What: "Request.TTL", Got: "1ns", Allowed: "1ms to 576h"})
	var ie *driver.InvalidError
	if !errors.As(err, &ie) || ie.What != "Request.TTL" || ie.Got != "1ns" || ie.Allowed != "1ms to 576h" {
		t.Errorf("%v: parts %+v", err, ie)
	}
	check.Error(t, "Invalid", err, driver.ErrInvalid)
	if want := "invalid Request.TTL: 1ns; allowed: 1ms to 576h"; ie.Error() != want {
		t.Errorf("Error() = %q, want %q", ie.Error(), want)
	}
}

// CodeOf is called on every call of a driver.
func TestCodeOfAllocates(t *testing.T) {
	err := wrap(serverError("MOVED 1 a:1"))
	if n := testing.AllocsPerRun(100, func() { _, _ = driver.CodeOf(nil), driver.CodeOf(err) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestFinal(t *testing.T) {
	t.Parallel()
	cause := errors.New("no number")
	err := fmt.Errorf("acquire: %w", driver.Permanent(cause))
	if !errors.Is(err, driver.ErrPermanent) || !errors.Is(err, cause) || err.Error() != "acquire: no number" {
		t.Errorf("%v does not match ErrPermanent and its cause, or says more", err)
	}
	if driver.Transient(err) || driver.NotExecuted(err) {
		t.Error("a final answer passes, or was not executed")
	}
	if driver.Permanent(nil) != nil {
		t.Error("Permanent(nil) is an error")
	}
}

// WaitRefused reports the refusal of a WAIT, not that of a script.
func TestWaitRefused(t *testing.T) {
	t.Parallel()
	refused := serverError("NOPERM no WAIT")
	if driver.WaitRefused(refused) || driver.WaitRefused(nil) || !driver.WaitRefused(&driver.WaitError{Err: refused}) {
		t.Error("WaitRefused does not tell whose refusal it was")
	}
}

package drivertest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var errorCases = []testCase{
	{
		name: "error replies keep their text", on: suite.WithoutSentinel,
		why: "strategies decide by the code whether a command ran; a client that drops or rewrites it makes a refusal an unknown outcome",
		run: errorRepliesKeepTheirText,
	},
	{
		name: "error replies show no arguments", on: suite.WithoutSentinel,
		why: "a server that does not know a command repeats its arguments, such as the token of a hold, and errors are logged",
		run: errorRepliesShowNoArguments,
	},
	{
		name: "error replies are never tried again", on: suite.WithoutSentinel,
		why: "clients resend on LOADING or TRYAGAIN; inside a script the first part has already run",
		run: errorRepliesAreNotTriedAgain,
	},
	{
		name: "refusals of the server are reported", on: suite.Simulated, own: true,
		why: "LOADING, READONLY, OOM and the like prove that nothing ran, and each must arrive unchanged, after one send",
		run: refusalsAreReported,
	},
	{
		name: "an unknown user is refused", on: suite.OnlySingle, own: true,
		why: "NOAUTH, WRONGPASS and NOPERM do not go away: a waiter must learn of them at once",
		run: unknownUserIsRefused,
	},
	{
		name: "a full server refuses", on: suite.OnlySingle, own: true,
		why: "OOM is a refusal, and must not be taken for contention",
		run: fullServerRefuses,
	},
	{
		name: "a replica refuses", on: suite.OnlySingle, own: true,
		why: "after a failover the old master answers READONLY: not contention, and nothing was stored",
		run: replicaRefuses,
	},
}

// refused demands that err is the error reply with this text.
func (t *caseT) refused(err error, text, what string) {
	t.Helper()
	var se *driver.ServerError
	switch {
	case !errors.As(err, &se):
		t.Errorf("%s: got %T %v, want a *driver.ServerError with %q", what, err, err, text)
	case se.Text != text:
		t.Errorf("%s: ServerError.Text is %q, want the server's %q", what, se.Text, text)
	case se.Err == nil:
		t.Errorf("%s: ServerError.Err is nil, want the client's own error", what)
	}
}

func errorRepliesKeepTheirText(t *caseT) {
	drv := t.Driver()
	for _, lua := range []string{
		`return redis.error_reply('MYCODE and a text')`,
		`return redis.error_reply('WRONGTYPE of our own')`,
		`return redis.error_reply('ERR plain')`,
		`return {err = 'OOM with  two spaces '}`,
		`return redis.error_reply('LOADING Redis is loading the dataset in memory')`,
		`redis.call('RPUSH', KEYS[1], 'a') redis.call('PEXPIRE', KEYS[1], 60000) return redis.pcall('GET', KEYS[1])`,
		`return redis.pcall('NOSUCHCOMMAND')`,
		`return redis.call('GET')`,
		`error('raised by the script')`,
		`this is not Lua`,
	} {
		key := t.Key()
		_, wanted := t.Server.Do(t.Ctx, key, "EVAL", lua, 1, key)
		var text resp.Error
		if !errors.As(wanted, &text) {
			t.Fatalf("%s: the server itself replied no error but %v", lua, wanted)
		}
		if strings.HasPrefix(string(text), "@user_script") { // without a code, in Redis 6.2
			text = "ERR " + text
		}
		_, err := drv.Eval(t.Ctx, script(lua), []string{key}, nil)
		t.refused(err, string(text), lua)
	}
}

func errorRepliesShowNoArguments(t *caseT) {
	const secret = "e9Wm2vXhVxkR0aT1bQpS4A"
	_, err := t.Driver().Eval(t.Ctx,
		script(`return redis.error_reply("ERR unknown command 'X', with args beginning with: '" .. ARGV[1] .. "' ")`),
		[]string{t.Key()}, []string{secret})
	t.refused(err, "ERR unknown command 'X'", "an unknown command")
	var show func(err error)
	show = func(err error) {
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, secret) {
			t.Errorf("%T shows an argument: %s", err, text)
		}
		switch e := err.(type) { //nolint:errorlint // it walks the tree
		case interface{ Unwrap() error }:
			if below := e.Unwrap(); below != nil {
				show(below)
			}
		case interface{ Unwrap() []error }:
			for _, below := range e.Unwrap() {
				show(below)
			}
		}
	}
	show(err)
}

func errorRepliesAreNotTriedAgain(t *caseT) {
	drv := t.Driver()
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN The cluster is down",
		"MASTERDOWN Link with MASTER is down", "BUSY Redis is busy", "NOREPLICAS Not enough good replicas to write.",
		"OOM command not allowed", "ERR max number of clients reached", "UNBLOCKED client unblocked",
	} {
		key := t.Key()
		failing := script(fmt.Sprintf(
			`redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], 60000) return redis.error_reply(%q)`, text))
		_, err := drv.Eval(t.Ctx, failing, []string{key}, nil)
		t.refused(err, text, text)
		if n, _ := t.Stored(key); n != "1" {
			t.Errorf("%s: the script ran %q times, want once", text, n)
		}
	}
}

func refusalsAreReported(t *caseT) {
	for _, tc := range []struct {
		text        string
		notExecuted bool
		transient   bool
	}{
		{"LOADING Redis is loading the dataset in memory", true, true},
		{"READONLY You can't write against a read only replica.", true, true},
		{"OOM command not allowed when used memory > 'maxmemory'.", true, true},
		{"NOREPLICAS Not enough good replicas to write.", true, true},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", true, true},
		{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", true, true},
		{"TRYAGAIN Multiple keys request during rehashing of slot", true, true},
		{"CLUSTERDOWN Hash slot not served", true, true},
		{"MISCONF Redis is configured to save RDB snapshots", true, true},
		{"NOPERM this user has no permissions to run the 'set' command", true, false},
		{"NOAUTH Authentication required.", true, false},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", true, false},
		{"CROSSSLOT Keys in request don't hash to the same slot", true, false},
		{"DENIED Redis is running in protected mode", true, false},
		{"ERR unknown command 'EVALSHA'", true, false},
		{"ERR Protocol error: unauthenticated multibulk length", true, false},
		{"ERR max number of clients reached", true, true},
		{"ERR something else", false, false},
	} {
		p, drv := t.Proxied()
		t.warm(drv, countScript)
		_, err := drv.SetNX(t.Ctx, t.Key(), "v", time.Minute)
		t.OK(err, "SetNX before")

		for what, send := range map[string]func(key string) error{
			"SetNX": func(key string) error { _, err := drv.SetNX(t.Ctx, key, "v", time.Minute); return err },
			"Eval":  func(key string) error { _, err := drv.Eval(t.Ctx, countScript, []string{key}, nil); return err },
		} {
			key := t.Key()
			t.Server.Mini.SetError(tc.text)
			err := send(key)
			t.Server.Mini.SetError("")
			what += " on " + (&driver.ServerError{Text: tc.text}).Code()
			t.refused(err, tc.text, what)
			if driver.NotExecuted(err) != tc.notExecuted || driver.Transient(err) != tc.transient {
				t.Errorf("%s: NotExecuted %v, Transient %v; want %v, %v", what, driver.NotExecuted(err),
					driver.Transient(err), tc.notExecuted, tc.transient)
			}
			if n := p.Sent(key); n != 1 {
				t.Errorf("%s: sent %d times, want once", what, n)
			}
		}
	}
}

func unknownUserIsRefused(t *caseT) {
	target := t.User("narrow", "~allowed*", "&*", "+@all")
	t.Do("", "CONFIG", "SET", "requirepass", "sesame")
	for _, tc := range []struct{ what, user, password, key, code string }{
		{"no password", "", "", "allowed", "NOAUTH"},
		{"a wrong password", "", "wrong", "allowed", "WRONGPASS"},
		{"a key that the user may not touch", "narrow", "secret", "forbidden", "NOPERM"},
	} {
		target.Username, target.Password = tc.user, tc.password
		drv, err := t.Suite.Dial(t.TB, target)
		if err == nil {
			_, err = drv.SetNX(t.Ctx, tc.key, "v", time.Minute)
			if err != nil && driver.Transient(err) {
				t.Errorf("%s: %v counts as transient, so waiters would repeat it", tc.what, err)
			}
			if closed := drv.Close(); closed != nil {
				t.Errorf("%s: Close: %v", tc.what, closed)
			}
		}
		// A client with a login at connect may report the error then, in its own words.
		if err == nil || !strings.Contains(err.Error(), tc.code) {
			t.Errorf("%s: got %v, want an error that reports %s", tc.what, err, tc.code)
		}
		if errors.Is(err, driver.ErrNotSent) || driver.NotExecuted(err) || err == nil {
			continue
		}
		t.Errorf("%s: %v leaves open whether the command ran", tc.what, err)
	}
}

func fullServerRefuses(t *caseT) {
	drv, key := t.Driver(), t.Key()
	t.Do("", "CONFIG", "SET", "maxmemory-policy", "noeviction")
	t.Do("", "CONFIG", "SET", "maxmemory", "1")
	_, err := drv.SetNX(t.Ctx, key, "v", time.Minute)
	if driver.CodeOf(err) != "OOM" || !driver.NotExecuted(err) {
		t.Errorf("SetNX on a full server: %v, want OOM, which proves that it did not run", err)
	}
	_, err = drv.Eval(t.Ctx, countScript, []string{key}, nil)
	if driver.CodeOf(err) != "OOM" || !driver.NotExecuted(err) {
		t.Errorf("Eval on a full server: %v, want OOM, which proves that it did not run", err)
	}
	if t.Exists(key) {
		t.Errorf("a key was stored on a full server")
	}
}

func replicaRefuses(t *caseT) {
	drv, key := t.Driver(), t.Key()
	_, err := drv.SetNX(t.Ctx, t.Key(), "v", time.Minute)
	t.OK(err, "SetNX on the master")
	t.Do("", "REPLICAOF", "127.0.0.1", 1) // nobody listens there: a replica without a master
	_, err = drv.SetNX(t.Ctx, key, "v", time.Minute)
	if driver.CodeOf(err) != "READONLY" || !driver.NotExecuted(err) {
		t.Errorf("SetNX on a replica: %v, want READONLY, which proves that it did not run", err)
	}
	t.Do("", "REPLICAOF", "NO", "ONE")
	t.Eventually("SetNX works on the new master", func() bool {
		set, err := drv.SetNX(t.Ctx, key, "v", time.Minute)
		return set && err == nil
	})
}

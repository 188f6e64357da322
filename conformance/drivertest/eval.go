package drivertest

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var evalCases = []testCase{
	{
		name: "replies have one form", on: suite.AllKinds,
		why: "strategies read replies by position and type; a client's own form of nil or of a number would be misread",
		run: repliesHaveOneForm,
	},
	{
		name: "keys and arguments carry any bytes", on: suite.WithoutSentinel,
		why: "a token or a name that is changed on the way belongs to another lock",
		run: evalCarriesAnyBytes,
	},
	{
		name: "many keys and arguments keep their order", on: suite.WithoutSentinel,
		why: "a script takes them by position",
		run: evalKeepsOrder,
	},
	{
		name: "slices belong to the caller after a call", on: suite.WithoutSentinel,
		why: "strategies reuse their slices; a client that still reads one after the return could send another lock's name",
		run: slicesAreTheCallers,
	},
	{
		name: "a script is sent by digest", on: suite.OneAddress,
		why: "the source is sent only when the server does not know the script, or each call would cost its length",
		run: scriptIsSentByDigest,
	},
	{
		name: "a flushed script runs once", on: suite.WithoutSentinel, own: true,
		why: "scripts are lost by SCRIPT FLUSH, restart and failover; the second try must not become a second execution",
		run: flushedScriptRunsOnce,
	},
}

func repliesHaveOneForm(t *caseT) {
	const nothing = "nil"
	drv := t.Driver()
	for _, tc := range []struct {
		lua  string
		want []any
	}{
		{`return nil`, []any{nothing}},
		{`return false`, []any{nothing}},
		{`return true`, []any{int64(1)}},
		{`return 0`, []any{int64(0)}},
		{`return -1`, []any{int64(-1)}},
		{`return 3.9`, []any{int64(3)}},
		{`return 9007199254740994`, []any{int64(1<<53 + 2)}},
		{`return -1152921504606846976`, []any{int64(-1 << 60)}},
		{`return ''`, []any{""}},
		{`return '12'`, []any{"12"}},
		{`return 'a\0\r\nb\255'`, []any{"a\x00\r\nb\xff"}},
		{`return {ok = 'FINE'}`, []any{"FINE"}},
		{`return redis.call('SET', KEYS[1], 'v', 'PX', 60000)`, []any{"OK"}},
		{`return redis.call('GET', KEYS[1])`, []any{nothing}},
		{`return {}`, []any{}},
		{`return {1}`, []any{int64(1)}},
		{`return {false}`, []any{nothing}},
		{`return {1, 'a', false, -5, ''}`, []any{int64(1), "a", nothing, int64(-5), ""}},
		{`return {false, false, 'x'}`, []any{nothing, nothing, "x"}},
		{`return {1, nil, 3}`, []any{int64(1)}},
		{`return {redis.call('SET', KEYS[1], 'v', 'PX', 60000), 7}`, []any{"OK", int64(7)}},
	} {
		key := t.Key()
		reply, err := drv.Eval(t.Ctx, script(tc.lua), []string{key}, nil)
		if err != nil {
			t.Errorf("%s: %v", tc.lua, err)
			continue
		}
		got := make([]any, reply.Len())
		for i := range got {
			if n, err := reply.Int(i); err == nil {
				got[i] = n
			} else if s, err := reply.Text(i); err == nil {
				got[i] = s
			} else if reply.IsNil(i) {
				got[i] = nothing
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: replied %q, want %q", tc.lua, got, tc.want)
		}
	}
}

func evalCarriesAnyBytes(t *caseT) {
	drv := t.Driver()
	echo := script(`redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000) return {KEYS[1], ARGV[1], ARGV[2]}`)
	for what, text := range oddTexts {
		key := t.Key() + text
		reply, err := drv.Eval(t.Ctx, echo, []string{key}, []string{text, ""})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for i, want := range []string{key, text, ""} {
			if got, err := reply.Text(i); err != nil || got != want {
				t.Errorf("%s: value %d came back as %.60q (%v), want %.60q", what, i, got, err, want)
			}
		}
		if v, _ := t.Stored(key); v != text {
			t.Errorf("%s: stored %.60q, want %.60q", what, v, text)
		}
	}
}

func evalKeepsOrder(t *caseT) {
	drv, tag := t.Driver(), "{"+t.Key()+"}"
	var keys, args []string
	for i := range 200 {
		keys = append(keys, fmt.Sprint(tag, "k", i))
		args = append(args, fmt.Sprint("a", i))
	}
	all := script(`local r = {#KEYS, #ARGV} for i = 1, #KEYS do r[#r + 1] = KEYS[i] end
		for i = 1, #ARGV do r[#r + 1] = ARGV[i] end return r`)
	for _, n := range []int{200, 1, 0} {
		keys, args := keys[:max(n, 1)], args[:n]
		reply, err := drv.Eval(t.Ctx, all, keys, args)
		t.OK(err, "Eval with %d keys and %d arguments", len(keys), len(args))
		want := slices.Concat([]string{strconv.Itoa(len(keys)), strconv.Itoa(len(args))}, keys, args)
		for i, w := range want {
			got, err := reply.Text(i)
			if i < 2 {
				var n int64
				n, err = reply.Int(i)
				got = strconv.FormatInt(n, 10)
			}
			if err != nil || got != w {
				t.Fatalf("%d arguments: value %d is %q (%v), want %q", n, i, got, err, w)
			}
		}
	}
	// No keys at all: any node may run it.
	reply, err := drv.Eval(t.Ctx, script(`return #KEYS + #ARGV`), nil, nil)
	t.OK(err, "Eval without keys and arguments")
	if n, err := reply.Int(0); n != 0 || err != nil {
		t.Errorf("a script without keys and arguments saw %d of them (%v)", n, err)
	}
}

func slicesAreTheCallers(t *caseT) {
	drv := t.Driver()
	echo := script(`return {KEYS[1], ARGV[1]}`)
	keys, args := make([]string, 1), make([]string, 1)
	for i := range 50 {
		key, arg := t.Key(), strconv.Itoa(i)
		keys[0], args[0] = key, arg
		reply, err := drv.Eval(t.Ctx, echo, keys, args)
		if keys[0] != key || args[0] != arg {
			t.Fatalf("Eval changed the caller's slices to %q, %q", keys, args)
		}
		keys[0], args[0] = "overwritten", "overwritten"
		t.OK(err, "Eval")
		gotKey, _ := reply.Text(0)
		gotArg, _ := reply.Text(1)
		if gotKey != key || gotArg != arg {
			t.Fatalf("replied %q, %q; want %q, %q", gotKey, gotArg, key, arg)
		}
	}
}

func scriptIsSentByDigest(t *caseT) {
	p, drv := t.Proxied()
	s := script(`return 'by digest'`)
	for range 3 {
		_, err := drv.Eval(t.Ctx, s, []string{t.Key()}, nil)
		t.OK(err, "Eval")
	}
	if n := p.Sent(s.Source()); n > 1 {
		t.Errorf("the source was sent %d times for 3 calls, want once", n)
	}
	if n := p.Count(faultproxy.Command("EVALSHA", s.Digest())); n != 3 {
		t.Errorf("EVALSHA was sent %d times for 3 calls, want 3", n)
	}
}

// countScript counts its executions at KEYS[1].
var countScript = script(`local n = redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], 60000) return n`)

func flushedScriptRunsOnce(t *caseT) {
	drv, key := t.Driver(), t.Key()
	for i := range int64(5) {
		t.OK(t.Server.EveryNode(t.Ctx, "SCRIPT", "FLUSH"), "SCRIPT FLUSH")
		reply, err := drv.Eval(t.Ctx, countScript, []string{key}, nil)
		t.OK(err, "Eval after SCRIPT FLUSH")
		if n, err := reply.Int(0); err != nil || n != i+1 {
			t.Fatalf("after %d calls the script had run %d times (%v)", i+1, n, err)
		}
	}
}

// wantEcho runs a script to return its key and its argument.
func wantEcho(t *caseT, drv driver.Driver, echo *driver.Script, key, arg string) error {
	reply, err := drv.Eval(t.Ctx, echo, []string{key}, []string{arg})
	if err != nil {
		return err
	}
	gotKey, _ := reply.Text(0)
	gotArg, _ := reply.Text(1)
	if gotKey != key || gotArg != arg {
		return fmt.Errorf("got the answer %q, %q to the question %q, %q", gotKey, gotArg, key, arg)
	}
	return nil
}

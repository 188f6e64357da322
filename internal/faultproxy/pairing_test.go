package faultproxy

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/resp"
)

// Each case is a conversation: lines from "> " on are requests; the others are messages of the
// server, with the answered request, or "-", behind a "=".
func TestPairing(t *testing.T) {
	t.Parallel()
	const subscribeA, subscribeB = `*3 $9 subscribe $1 a :1`, `*3 $9 subscribe $1 b :2`
	check.Each(t, map[string][]string{
		"in order": {
			"> GET x", "> GET y", "$1 1 = GET x", "> GET z", "*2 $1 a *1 _ = GET y", "-ERR = GET z",
		},
		"RESP2 subscribe to two, messages between": {
			"> SUBSCRIBE a b", "> PING",
			subscribeA + " = SUBSCRIBE a b", "*3 $7 message $1 a $1 m = -", subscribeB + " = -",
			"*3 $7 message $1 b $1 m = -", "*4 $8 pmessage $1 p $1 b $1 m = -", "*2 $4 pong $0  = PING",
		},
		"RESP3 the same": {
			"> SUBSCRIBE a b", "> GET x",
			"> PUBLISH a m", ">3 $9 subscribe $1 a :1 = SUBSCRIBE a b", ">3 $7 message $1 a $1 m = -",
			">3 $9 subscribe $1 b :2 = -", "%1 $1 k :1 = GET x", ":1 = PUBLISH a m",
		},
		"RESP3 a reply that looks like a message": {
			"> SUBSCRIBE a", "> LRANGE l 0 -1",
			">3 $9 subscribe $1 a :1 = SUBSCRIBE a", "*3 $7 message $1 a $1 m = LRANGE l 0 -1",
		},
		"a reply that looks like a message, not subscribed": {
			"> SUBSCRIBE a", "> UNSUBSCRIBE a", "> LRANGE l 0 -1",
			subscribeA + " = SUBSCRIBE a", "*3 $11 unsubscribe $1 a :0 = UNSUBSCRIBE a",
			"*3 $7 message $1 a $1 m = LRANGE l 0 -1",
		},
		"unsubscribe from all of a kind": {
			"> SUBSCRIBE a b", "> PSUBSCRIBE p", "> UNSUBSCRIBE", "> PUNSUBSCRIBE", "> PING",
			subscribeA + " = SUBSCRIBE a b", subscribeB + " = -", "*3 $10 psubscribe $1 p :3 = PSUBSCRIBE p",
			"*3 $11 unsubscribe $1 b :2 = UNSUBSCRIBE", "*3 $11 unsubscribe $1 a :1 = -",
			"*3 $12 punsubscribe $1 p :0 = PUNSUBSCRIBE", "+PONG = PING",
		},
		"unsubscribe from nothing": {
			"> UNSUBSCRIBE", "> PING", "*3 $11 unsubscribe $-1 :0 = UNSUBSCRIBE", "+PONG = PING",
		},
		"subscribe is refused": {
			"> ssubscribe s", "> PING", "-MOVED 1 127.0.0.1:1 = ssubscribe s", "+PONG = PING",
		},
		"a slot moves away with its subscription": {
			"> SSUBSCRIBE s", "> PING", "*3 $10 ssubscribe $1 s :1 = SSUBSCRIBE s",
			"*3 $12 sunsubscribe $1 s :0 = -", "+PONG = PING",
		},
		"subscribe within a transaction": {
			"> MULTI", "> SUBSCRIBE a", "> PING", "+OK = MULTI", "+QUEUED = SUBSCRIBE a", "+PONG = PING",
		},
		"reset ends subscriptions": {
			"> SUBSCRIBE a", "> RESET", "> LRANGE l 0 -1",
			subscribeA + " = SUBSCRIBE a", "+RESET = RESET", "*3 $7 message $1 a $1 m = LRANGE l 0 -1",
		},
		"unasked": {
			"-ERR max number of clients reached = -", "> GET x",
			">2 $10 invalidate *1 $1 x = -", "|1 $1 a $1 b = -", "$-1 = GET x", ">2 $10 invalidate _ = -",
		},
	}, func(t *testing.T, conversation []string) {
		var p pairing
		for _, line := range conversation {
			if words, isRequest := strings.CutPrefix(line, "> "); isRequest {
				p.sent(&request{args: strings.Split(words, " ")})
				continue
			}
			message, want, _ := strings.Cut(line, " = ")
			got := "-"
			if r := p.answered(parse(t, message)); r != nil {
				got = strings.Join(r.args, " ")
			}
			check.Equal(t, "what "+message+" answers", got, want)
		}
		check.Equal(t, "requests that wait", len(p.waiting), 0)
	})
}

// parse reads RESP with a blank for CR LF. Simple strings and errors keep theirs.
func parse(t *testing.T, message string) resp.Value {
	t.Helper()
	if !strings.HasPrefix(message, "-") {
		message = strings.ReplaceAll(message, " ", "\r\n")
	}
	r := resp.NewReader(strings.NewReader(message + "\r\n"))
	v, err := r.Read()
	check.Must(t, err)
	check.Error(t, fmt.Sprintf("behind %q", message), check.ErrOf(r.Read()), io.EOF)
	return v
}

func TestMatch(t *testing.T) {
	t.Parallel()
	requests := []string{"SET key 1", "set other 2", "SETNX key 1", "EVALSHA abc 1 key", "GET SET", ""}
	for name, tc := range map[string]struct {
		match Match
		want  []string
	}{
		"Any":                       {Any, requests},
		"Command":                   {Command("Set"), requests[:2]},
		"Command with one text":     {Command("set", "ke"), requests[:1]},
		"Command with two texts":    {Command("evalsha", "abc", "key"), requests[3:4]},
		"Command, one text missing": {Command("evalsha", "abc", "other"), nil},
		"Command is no text of it":  {Command("SET", "SET"), nil},
		"Contains":                  {Contains("SET"), []string{requests[0], requests[2], requests[4]}},
		"Contains two":              {Contains("key", "1"), []string{requests[0], requests[2], requests[3]}},
	} {
		var got []string
		for _, r := range requests {
			if tc.match(strings.Fields(r)) {
				got = append(got, r)
			}
		}
		check.EqualSlices(t, name+" matches", got, tc.want)
	}
}

func TestRulesThatMakeNoSensePanic(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]Rule{
		"no Match":           {},
		"Nth":                {Match: Any, Nth: -1},
		"Fault":              {Match: Any, Fault: faults},
		"Delay without By":   {Match: Any, Fault: Delay},
		"Delay of less":      {Match: Any, Fault: Delay, By: -1},
		"By without Delay":   {Match: Any, Fault: Cut, By: 1},
		"less without Delay": {Match: Any, Fault: Cut, By: -1},
	}, func(t *testing.T, r Rule) { check.Panics(t, nil, func() { newTrap(r) }) })
}

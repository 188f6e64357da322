package adapter

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Command is one command on its way to a server, or a script and the WAIT behind it. A client reads
// its Words, and records what came of it by Answer.
type Command struct {
	// Words are the command and its arguments. They are never changed.
	Words []string
	// Wait are the arguments of a WAIT to send behind the command, on the same connection. Empty:
	// none. Such a command is sent by itself.
	Wait [2]string

	keys, firstKey int // of Words

	state atomic.Uint32 // see Begin

	reply, acked any
	err, waitErr error
	recorded     bool // Answer was called

	began    time.Time // when its caller came
	deadline time.Time // of its caller; zero: none
	urgent   bool
	ctx      context.Context //nolint:containedctx // of its caller
	alone    [1]*Command     // the command itself, for a flight of one
	done     chan struct{}   // closed once answered; nil: its caller sends it

	// Under the mutex of the Pipeline.
	queue      *queue // that it waits in; nil: none
	prev, next *Command
	flight     *flight // that it is on; nil: none
	answered   bool
	late       func(v any, err error) // takes the outcome; nil: its caller waits
}

// The states of a command.
const (
	unsent    = iota // the client has not begun to write it
	sent             // it may have left
	abandoned        // its caller has left: it is never sent
)

// newSetNX makes a SET NX PX.
func newSetNX(key, value, ms string) *Command {
	return &Command{Words: []string{"SET", key, value, "NX", "PX", ms}, firstKey: 1, keys: 1}
}

// newScript makes an EVALSHA or EVAL.
func newScript(command, body, numKeys string, keys, args []string) *Command {
	words := make([]string, 3, 3+len(keys)+len(args))
	words[0], words[1], words[2] = command, body, numKeys
	return &Command{Words: append(append(words, keys...), args...), firstKey: 3, keys: len(keys)}
}

// Parts are the Words ahead of the keys, the keys, and the Words behind them.
func (c *Command) Parts() (head, keys, rest []string) {
	end := c.firstKey + c.keys
	return c.Words[:c.firstKey], c.Words[c.firstKey:end], c.Words[end:]
}

// Any are the Words, for a client that wants them as []any.
func (c *Command) Any() []any {
	words := make([]any, len(c.Words))
	for i, w := range c.Words {
		if shared, ok := common(w); ok {
			words[i] = shared
		} else {
			words[i] = w
		}
	}
	return words
}

// common returns a word that many commands have, without the allocation that it costs to put another
// one into an any.
func common(word string) (shared any, ok bool) {
	switch word {
	case "SET":
		return "SET", true
	case "NX":
		return "NX", true
	case "PX":
		return "PX", true
	case "EVALSHA":
		return "EVALSHA", true
	case "0":
		return "0", true
	case "1":
		return "1", true
	case "2":
		return "2", true
	case "3":
		return "3", true
	}
	return nil, false
}

// Key is the first key, by which a cluster finds the node. Empty: there is none.
func (c *Command) Key() string {
	if c.keys == 0 {
		return ""
	}
	return c.Words[c.firstKey]
}

// Begin reports whether c may be sent. A client calls it right before it writes c. If its caller has
// left before, Begin returns false, now and later: the server must not execute c.
func (c *Command) Begin() bool {
	return c.state.CompareAndSwap(unsent, sent) || c.state.Load() == sent
}

// Abandoned reports whether c must not be sent: its caller has left.
func (c *Command) Abandoned() bool { return c.state.Load() == abandoned }

// abandon reports whether c has not been sent; then it never will be.
func (c *Command) abandon() bool {
	return c.state.CompareAndSwap(unsent, abandoned) || c.state.Load() == abandoned
}

// Answer records what the client decoded of the reply to c, or why there is none. See package
// adapter on errors. The error of a command that did not Begin is marked by driver.NotSent.
func (c *Command) Answer(reply any, err error) {
	if err != nil && c.state.Load() != sent {
		err = driver.NotSent(err)
	}
	c.reply, c.err, c.recorded = reply, err, true
}

// errNoAnswer is the error of a command that a client's Send returned without.
var errNoAnswer = errors.New("the client returned no answer")

// demandAnswer makes it an error of c that the client has not called Answer: it must not be read as a
// nil reply.
func (c *Command) demandAnswer() {
	if !c.recorded {
		c.Answer(nil, errNoAnswer)
	}
}

// AnswerWait records what the client decoded of the reply to the WAIT behind c.
func (c *Command) AnswerWait(reply any, err error) { c.acked, c.waitErr = reply, err }

// outcome is what a driver returns of c, as a late answer.
func (c *Command) outcome() (v any, err error) {
	switch {
	case c.firstKey == 1:
		return c.isSet()
	case c.Wait[0] != "":
		v, _, err = AckedReply(c.reply, c.err, c.acked, c.waitErr)
		return v, err
	}
	return c.result()
}

// Err returns the error that Answer recorded.
func (c *Command) Err() error { return c.err }

// HasWait reports whether a WAIT is to be sent behind c.
func (c *Command) HasWait() bool { return c.Wait[0] != "" }

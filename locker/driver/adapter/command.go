package adapter

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Command is one command on its way to a server, or a script and the WAIT behind it. A client reads
// its Words, and records the outcome by Answer.
type Command struct {
	// Words are the command and its arguments. They are never changed.
	Words []string
	// Wait are the arguments of a WAIT to send behind the command, on the same connection. Empty:
	// none. Such a command is sent by itself.
	Wait [2]string

	firstKey, keys int32 // of Words

	state    atomic.Uint32 // see Begin
	recorded bool          // Answer was called
	urgent   bool
	queued   bool // it waits for a flight; under the mutex of the Pipeline
	answered bool // as queued

	reply any
	err   error
	acked *acked // of AnswerWait

	ctx   context.Context //nolint:containedctx // of its caller
	alone [1]*Command     // the command itself, for a flight of one
	done  chan struct{}   // closed once answered; nil: its caller sends it

	// Under the mutex of the Pipeline.
	prev, next *Command
	flight     *flight                // carries it; nil: none
	late       func(v any, err error) // takes the outcome; nil: its caller waits
}

// acked is the client's decoded reply to a WAIT, or its error.
type acked struct {
	reply any
	err   error
}

// The states of a command.
const (
	unsent    = iota // the client has not begun to write it
	sent             // it may have left
	abandoned        // its caller has left: it is never sent
)

// newSetNX makes a SET NX PX.
func newSetNX(key, value, ms string) *Command {
	c := newCommand(6, 1, 1)
	c.Words = append(c.Words, "SET", key, value, "NX", "PX", ms)
	return c
}

// newScript makes an EVALSHA or EVAL.
func newScript(command, body, numKeys string, keys, args []string) *Command {
	c := newCommand(3+len(keys)+len(args), 3, len(keys))
	c.Words = append(append(append(c.Words, command, body, numKeys), keys...), args...)
	return c
}

// newCommand makes a Command with room for n words: in one allocation if they are as few as those
// of an acquire or a release of a free lock.
func newCommand(n, firstKey, keys int) *Command {
	const few = 7
	var c *Command
	if n <= few {
		made := new(struct {
			Command
			words [few]string
		})
		c = &made.Command
		c.Words = made.words[:0]
	} else {
		c = &Command{Words: make([]string, 0, n)}
	}
	c.firstKey, c.keys = int32(firstKey), int32(keys) //nolint:gosec // memory ends long before
	return c
}

// Parts returns the Words ahead of the keys, the keys, and the Words behind them.
func (c *Command) Parts() (head, keys, rest []string) {
	end := c.firstKey + c.keys
	return c.Words[:c.firstKey], c.Words[c.firstKey:end], c.Words[end:]
}

// Any returns the Words as []any, for a client with such arguments.
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

// common returns a frequent word as an any, without an allocation.
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

// Key returns the first key: it decides the node of a cluster. Empty: there is none.
func (c *Command) Key() string {
	if c.keys == 0 {
		return ""
	}
	return c.Words[c.firstKey]
}

// Begin reports whether c may be sent. A client calls it right before it writes c. If its caller
// has left before, Begin returns false, now and later: the server must not execute c.
func (c *Command) Begin() bool {
	return c.state.CompareAndSwap(unsent, sent) || c.state.Load() == sent
}

// Abandoned reports whether c must not be sent: its caller has left.
func (c *Command) Abandoned() bool { return c.state.Load() == abandoned }

// abandon reports whether c has not been sent; then it never will be.
func (c *Command) abandon() bool {
	return c.state.CompareAndSwap(unsent, abandoned) || c.state.Load() == abandoned
}

// Answer records the decoded reply to c, or the error. See package adapter on errors. If c did not
// Begin, Answer marks the error by driver.NotSent.
func (c *Command) Answer(reply any, err error) {
	if err != nil && c.state.Load() != sent {
		err = driver.NotSent(err)
	}
	c.reply, c.err, c.recorded = reply, err, true
}

// errNoAnswer is the error of a command if the client's Send did not answer it.
var errNoAnswer = errors.New("the client returned no answer")

// demandAnswer records an error if the client has not called Answer: c must not seem to have a nil
// reply.
func (c *Command) demandAnswer() {
	if !c.recorded {
		c.Answer(nil, errNoAnswer)
	}
}

// AnswerWait records the decoded reply to the WAIT behind c, or the error.
func (c *Command) AnswerWait(reply any, err error) { c.acked = &acked{reply, err} }

// outcome returns the late answer of c, as a driver reports it.
func (c *Command) outcome() (v any, err error) {
	switch {
	case c.firstKey == 1:
		return c.isSet()
	case c.HasWait():
		v, _, err = c.ackedResult()
		return v, err
	}
	return c.result()
}

// Err returns the error of Answer.
func (c *Command) Err() error { return c.err }

// HasWait reports whether a WAIT is to be sent behind c.
func (c *Command) HasWait() bool { return c.Wait[0] != "" }

package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// NodeError is the error of one node.
type NodeError struct {
	// Node is its index among the nodes of New.
	Node int
	// Name is its name in the Config, or else the address of its server; empty if neither is known.
	Name string
	// Address is the address of its server; empty if unknown.
	Address string
	// Err is its failure. It matches locker.ErrUnknownOutcome if the node has not answered.
	Err error
}

// Error implements error. It names the server's address once: not before Err, if Err's text has it.
func (e *NodeError) Error() string {
	cause := e.Err.Error()
	var names []string
	for _, name := range []string{e.Name, e.Address} {
		if name != "" && !slices.Contains(names, name) && (name != e.Address || !strings.Contains(cause, name)) {
			names = append(names, name)
		}
	}
	s := "node " + strconv.Itoa(e.Node)
	if len(names) > 0 {
		s += " (" + strings.Join(names, ", ") + ")"
	}
	return s + ": " + cause
}

// Unwrap returns Err.
func (e *NodeError) Unwrap() error { return e.Err }

// QuorumError is the error of a quorum missed because nodes failed or did not answer. It never
// matches locker.ErrNotAcquired or locker.ErrNotHeld: those are answers.
type QuorumError struct {
	// Of is the number of nodes, and Needed the quorum. Done nodes succeeded. Refused nodes
	// answered: another holds the lock, or they hold it no longer.
	Done, Refused, Of, Needed int
	// Nodes are the errors of nodes that failed, did not answer in time, or no longer held the lock
	// because they had failed before.
	Nodes []*NodeError

	decisive []error
}

// Error implements error.
func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d nodes did, %d needed", e.Done, e.Of, e.Needed)
	if e.Refused > 0 {
		fmt.Fprintf(&b, "; %d refused", e.Refused)
	}
	b.WriteString(listed(e.Nodes))
	return b.String()
}

// listed returns the error texts, each preceded by a semicolon.
func listed(all []*NodeError) string {
	var b strings.Builder
	for _, n := range all {
		b.WriteString("; " + n.Error())
	}
	return b.String()
}

// Unwrap returns the decisive NodeErrors. These are the permanent ones (NOPERM, a closed driver) if
// they leave no quorum, or if no other node failed or refused. Otherwise they are the others, maybe
// none: the quorum may become available again.
func (e *QuorumError) Unwrap() []error { return e.decisive }

// unanswered makes Unwrap return only the nodes without an answer, and returns e.
func (e *QuorumError) unanswered() *QuorumError {
	e.decisive = nil
	for _, n := range e.Nodes {
		if n.Err == errUnanswered { //nolint:errorlint // set by this package itself
			e.decisive = append(e.decisive, n)
		}
	}
	return e
}

// abandonedError is the error of an acquire whose ctx ended before it was decided.
type abandonedError struct {
	ended error
	nodes *QuorumError
}

// Error implements error. It leaves out the end of ctx: the caller knows it.
func (e *abandonedError) Error() string {
	return locker.ErrUnknownOutcome.Error() + ": " + e.nodes.Error()
}

// Unwrap makes all of it match.
func (e *abandonedError) Unwrap() []error {
	return []error{locker.ErrUnknownOutcome, e.ended, e.nodes}
}

// unansweredError is the error of a node without an answer. It matches locker.ErrUnknownOutcome.
type unansweredError struct {
	silence time.Duration // for how long; zero: not said
}

func (e *unansweredError) Error() string {
	if e.silence == 0 {
		return "no answer yet"
	}
	return fmt.Sprintf("no answer for %v", e.silence.Round(time.Millisecond))
}

func (e *unansweredError) Unwrap() error { return locker.ErrUnknownOutcome }

// errUnanswered is the error of a node without an answer so far.
var errUnanswered error = &unansweredError{}

// errEnded is the error of a node lock that ended before the quorum was reached.
var errEnded = errors.New("its lock ended before the quorum was reached")

// errOvertaken is the error of a conversion not begun when the next one began.
var errOvertaken = errors.New("not converted: another conversion began first")

// errShort is the error of a lease shorter than asked for.
var errShort = errors.New("its lease ends before the Deadline")

// errStalled is the error of a node not asked, since it answers nothing.
var errStalled = errors.New("not asked: too many unanswered calls")

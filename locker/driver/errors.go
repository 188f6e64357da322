package driver

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
)

// ErrNotSent marks the error of a command that certainly never left this process.
var ErrNotSent = errors.New("command was not sent")

// ErrCleanUpUnfinished is returned by Close if acquires, or the clean-up of acquires of unknown
// outcome, were still running when it stopped waiting. The driver is closed all the same. A key may
// stay until its TTL.
var ErrCleanUpUnfinished = errors.New(
	"driver: closed while the clean-up of locks of unknown outcome was under way; a key may stay until its TTL")

// ErrClosed is the error of every call after Close. It matches ErrNotSent.
var ErrClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string        { return "driver is closed" }
func (closedError) Is(target error) bool { return target == ErrNotSent }

// NotSent makes err match ErrNotSent: its command certainly never left this process. If err is nil
// or matches already, NotSent returns it unchanged.
func NotSent(err error) error {
	if err == nil || errors.Is(err, ErrNotSent) {
		return err
	}
	return &notSentError{err}
}

type notSentError struct{ err error }

func (e *notSentError) Error() string        { return ErrNotSent.Error() + ": " + e.err.Error() }
func (e *notSentError) Unwrap() error        { return e.err }
func (e *notSentError) Is(target error) bool { return target == ErrNotSent }

// ErrPermanent marks an error that another attempt would only repeat, although it is no error
// reply: a script found a foreign value, a reply was malformed, or the client was closed.
var ErrPermanent = errors.New("another attempt would be answered the same")

// Permanent makes err match ErrPermanent. It keeps err's text, and returns nil if err is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string        { return e.err.Error() }
func (e *permanentError) Unwrap() error        { return e.err }
func (e *permanentError) Is(target error) bool { return target == ErrPermanent }

// ServerError is an error reply. Its text has no argument of a command, since one of them may be
// the token of a hold. Adapters make it with adapter.NewServerError.
type ServerError struct {
	// Text is the reply with its code, without the leading '-' and without repeated arguments.
	Text string
	// Err is the client's own error, or a plain one if its text repeated arguments, or nil.
	Err error
}

// Error implements error.
func (e *ServerError) Error() string { return "server error: " + e.Text }

// Unwrap returns the client's own error.
func (e *ServerError) Unwrap() error { return e.Err }

// Code returns the first word of the reply, such as "WRONGTYPE", or "NOPERM" if the ACL stopped a
// script: that reply has no code.
func (e *ServerError) Code() string {
	if e.interrupted() {
		return "NOPERM"
	}
	code, _, _ := strings.Cut(e.Text, " ")
	if _, raised, found := strings.Cut(e.Text, ": -"); found && strings.HasPrefix(e.Text, oldScriptError) {
		inner, _, _ := strings.Cut(raised, " ")
		if _, known := refusalCodes[inner]; known {
			return inner
		}
	}
	return code
}

// oldScriptError is how the reply of Redis 6.2 begins if a command ended its script. The command's
// own reply comes behind ": -". Later servers begin with it.
const oldScriptError = "ERR Error running script (call to "

// How the ACL refuses a command of a script: aclRefusal in Redis 7.2 and later and in Valkey,
// oldACLRefusal in Redis 7.0, and behind other text in Redis 6.2.
const (
	aclRefusal    = "ERR ACL failure in script"
	oldACLRefusal = "The user executing the script can't "
)

// Interrupted reports whether err is the ACL's refusal of a command within a script. Earlier writes
// of the script are not undone, and another attempt would only repeat them.
func Interrupted(err error) bool {
	se, ok := errors.AsType[*ServerError](err)
	return ok && se.interrupted()
}

func (e *ServerError) interrupted() bool {
	return strings.HasPrefix(e.Text, aclRefusal) ||
		strings.HasPrefix(e.Text, "ERR ") && strings.Contains(e.Text, oldACLRefusal)
}

// CodeOf returns the code of the [*ServerError] in err's chain, or "" if there is none.
func CodeOf(err error) string {
	if se, ok := errors.AsType[*ServerError](err); ok {
		return se.Code()
	}
	return ""
}

// refusal is an error reply which proves that the command was not executed.
type refusal struct {
	transient bool // trying again later can help
}

// refusalCodes are the codes of such replies. Only AUTH is answered with WRONGPASS. MISCONF comes
// before any write. CROSSSLOT is detected before a command runs (getNodeByQuery in Redis'
// cluster.c); a script that leaves its slot gets the code ERR instead. DENIED is sent on a
// connection in protected mode, closed unread (clientAcceptHandler in networking.c).
var refusalCodes = map[string]refusal{
	"MOVED": {true}, "ASK": {true}, "TRYAGAIN": {true}, "CLUSTERDOWN": {true}, "READONLY": {true}, "LOADING": {true},
	"MASTERDOWN": {true}, "OOM": {true}, "NOREPLICAS": {true}, "BUSY": {true}, "NOSCRIPT": {true}, "MISCONF": {true},
	"NOPERM": {false}, "NOAUTH": {false}, "WRONGPASS": {false}, "WRONGTYPE": {false}, "CROSSSLOT": {false},
	"DENIED": {false},
}

// refusalTexts are the beginnings of such replies with the code ERR. None can come from inside a
// script: errors of its commands begin differently. "ERR wrong number of arguments" is missing: a
// script can return it after a write.
var refusalTexts = []struct {
	prefix string
	refusal
}{
	{"ERR unknown command", refusal{false}},      // processCommand in server.c looks it up first
	{"ERR max number of clients", refusal{true}}, // acceptCommonHandler in networking.c closes the connection unread

	// A command of more than ten words, or with a long one, on a connection without a login:
	// processMultibulkBuffer in networking.c closes it without having read the command.
	{"ERR Protocol error: unauthenticated", refusal{false}},
}

// refusalOf returns the refusal in err's chain, and whether there is one.
func refusalOf(err error) (r refusal, proven bool) {
	se, ok := errors.AsType[*ServerError](err)
	if !ok {
		return refusal{}, false
	}
	for _, t := range refusalTexts {
		if strings.HasPrefix(se.Text, t.prefix) {
			return t.refusal, true
		}
	}
	r, proven = refusalCodes[se.Code()]
	return r, proven
}

// handshakeAlerts are the TLS alerts of a server against a client (RFC 8446, section 6.2): a bad
// certificate, none, or no version or cipher in common.
var handshakeAlerts = []tls.AlertError{
	40,  // handshake_failure
	42,  // bad_certificate
	43,  // unsupported_certificate
	44,  // certificate_revoked
	45,  // certificate_expired
	46,  // certificate_unknown
	48,  // unknown_ca
	49,  // access_denied
	70,  // protocol_version
	71,  // insufficient_security
	112, // unrecognized_name
	116, // certificate_required
}

// untrusted reports whether a TLS handshake failed because one side refused the other. With TLS 1.3
// the client may have sent a command by then; the server has not read it.
func untrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && op.Err != nil && // crypto/tls does not export the type of these alerts
		slices.ContainsFunc(handshakeAlerts, func(alert tls.AlertError) bool { return alert.Error() == op.Err.Error() })
}

// NotExecuted reports whether err proves that the command did not run: it was not sent, a TLS
// handshake failed, or the server refused it by a reply that comes before the execution only. It
// returns false for nil, for every other error, for an [Interrupted] one, and for a [*WaitError].
func NotExecuted(err error) bool {
	if _, ok := errors.AsType[*WaitError](err); ok {
		return false
	}
	if errors.Is(err, ErrNotSent) {
		return true
	}
	if Interrupted(err) {
		return false
	}
	if untrusted(err) {
		return true
	}
	_, proven := refusalOf(err)
	return proven
}

// Transient reports whether trying again later can help. It returns true for every transport error
// and for the error replies of a failover, of a slot in migration, and of a busy, loading or full
// server. It returns false for nil, for all other error replies, for a failed TLS handshake, and
// for errors that match ErrPermanent, ErrClosed, ErrInvalid or errors.ErrUnsupported. A
// [*WaitError] is transient unless [WaitRefused].
func Transient(err error) bool {
	if err == nil || errors.Is(err, ErrPermanent) || errors.Is(err, ErrClosed) ||
		errors.Is(err, ErrInvalid) || errors.Is(err, errors.ErrUnsupported) || untrusted(err) {
		return false
	}
	if e, ok := errors.AsType[*WaitError](err); ok {
		return !e.refused()
	}
	if CodeOf(err) == "" {
		return true
	}
	r, _ := refusalOf(err)
	return r.transient
}

package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// Locker is a quorum over nodes. It implements locker.Locker and, if a quorum of its nodes does,
// locker.Inspector; locker.Break ends the holds of its nodes.
type Locker struct {
	nodes  []*quorumNode
	quorum int
	cfg    Config

	leftovers leftovers
}

var (
	_ locker.Locker    = (*Locker)(nil)
	_ locker.Inspector = (*Locker)(nil)
)

// New returns a Locker over a quorum of nodes. The nodes are bare strategies over servers that
// share nothing, each given once, and no quorums themselves: middleware goes around the quorum. New
// sends nothing. Errors: ErrInvalid.
func New(nodes []locker.Locker, cfg Config) (*Locker, error) {
	if err := checkNodes(nodes); err != nil {
		return nil, err
	}
	if err := cfg.validate(len(nodes)); err != nil {
		return nil, err
	}
	l := &Locker{quorum: cmp.Or(cfg.Quorum, len(nodes)/2+1), cfg: cfg}
	l.cfg.WakeJitter = cmp.Or(cfg.WakeJitter, defaultWakeJitter)
	shared := &quorumHealth{size: len(nodes)}
	for i, inner := range nodes {
		n := &quorumNode{inner: inner, index: i, quorum: shared}
		n.learn(lease.TraitsOf(inner).Source)
		if len(cfg.Names) > 0 {
			n.name = cfg.Names[i]
		}
		l.nodes = append(l.nodes, n)
	}
	return l, nil
}

// checkNodes refuses missing, nil or repeated nodes, quorums and semaphores.
func checkNodes(nodes []locker.Locker) error {
	if len(nodes) == 0 {
		return argument.Invalid("redlock.New nodes", "none", "one Locker for each independent server, best an odd number")
	}
	for i, n := range nodes {
		what := fmt.Sprintf("redlock.New nodes[%d]", i)
		if n == nil {
			return argument.Invalid(what, "nil", "a Locker")
		}
		if _, nested := lease.Find[*Locker](n); nested {
			return argument.Invalid(what, "a quorum", "a Locker over one server: give its nodes to one quorum")
		}
		if lease.TraitsOf(n).Permits > 0 {
			return argument.Invalid(what, "a semaphore",
				"a Locker of locks: a majority of n permits on each node is more than n permits")
		}
		if j := slices.IndexFunc(nodes[:i], func(other locker.Locker) bool { return same(n, other) }); j >= 0 {
			return argument.Invalid(what, fmt.Sprintf("the same as nodes[%d]", j), "a Locker for another server")
		}
	}
	return nil
}

// Traits returns lease.Traits, also for the Leases of its locks. Their Source has the clients and
// addresses of the nodes, as far as known, separated by commas. The Locker is reentrant, or orders the
// modes, if a node does: the nodes are of one strategy, but the middleware around one may hide it.
func (l *Locker) Traits() lease.Traits {
	traits := lease.Traits{Source: l.source()}
	for _, n := range l.nodes {
		of := lease.TraitsOf(n.inner)
		traits.Reentrant, traits.Ordered = traits.Reentrant || of.Reentrant, traits.Ordered || of.Ordered
	}
	return traits
}

func (l *Locker) source() locktrace.Source {
	var clients, addresses []string
	for _, n := range l.nodes {
		known := n.where()
		if known.Client != "" && !slices.Contains(clients, known.Client) {
			clients = append(clients, known.Client)
		}
		if known.Address != "" {
			addresses = append(addresses, known.Address)
		}
	}
	return locktrace.Source{Strategy: "redlock", Client: strings.Join(clients, ","),
		Address: strings.Join(addresses, ",")}
}

// same reports whether two Lockers are one, as far as they can be compared.
func same(a, b locker.Locker) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// Acquire implements locker.Locker: one attempt at all nodes at once, to acquire the lock or, with
// Request.Resume, to take over the hold of a Handle.
//
// Errors beside those of package locker: a [*QuorumError], with a [*NodeError] for each failed
// node, if failures keep it from reaching the quorum. ErrLost if less than Config.MinValidity was
// left of the lease, and the lock was released; a resume is undone then, with ErrUnknownOutcome.
func (l *Locker) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	op := "acquire"
	if !req.Resume.IsZero() {
		op = "resume"
	}
	lock, err := l.acquire(ctx, req)
	if err != nil {
		return nil, &locker.OpError{Op: op, Name: req.Name, Err: err}
	}
	return lock, nil
}

// check refuses an invalid request. To resume, it returns the tokens of the nodes and the note.
func (l *Locker) check(ctx context.Context, req locker.Request) (tokens []string, note string, err error) {
	if ctx == nil {
		return nil, "", argument.NilContext("Acquire ctx")
	}
	if err := req.Validate(); err != nil {
		return nil, "", err
	}
	if req.Permits > 1 {
		return nil, "", fmt.Errorf("a quorum has no permits, semaphore does: %w", errors.ErrUnsupported)
	}
	if !req.Resume.IsZero() {
		if tokens, note, err = decodeToken(req.Resume.Info().Token, len(l.nodes)); err != nil {
			return nil, "", err
		}
		if none := func(token string) bool { return token == "" }; len(slices.DeleteFunc(slices.Clone(tokens),
			none)) < l.quorum {
			return nil, "", locker.ErrNotHeld // there is nothing to resume
		}
	}
	if ttl := max(l.cfg.ttl(cmp.Or(req.TTL, req.Resume.Info().TTL)), req.MinHold); ttl <= l.cfg.MinValidity {
		return nil, "", argument.Invalid("Request.TTL", ttl.String(),
			fmt.Sprintf("more than redlock.Config.MinValidity, %v", l.cfg.MinValidity))
	}
	return tokens, note, lease.ContextErr(ctx)
}

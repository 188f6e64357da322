package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

//go:embed lua/scan.lua
var scanSource string

var scanScript = driver.NewScript(strategySource + scanSource)

//go:embed lua/masters.lua
var mastersSource string

var mastersScript = driver.NewScript(mastersSource)

func newList(o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List the locks that are held",
		Long: `List the locks that are held, of all strategies. PATTERN is that of SCAN, such as 'invoice:*'.

It scans all keys of the server in small steps, and never blocks it: in a Cluster those of each
master, in a quorum those of each node. A lock that is acquired or released meanwhile may be missing
or listed twice.`,
		Args: takes(0, 1, "at most one PATTERN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := "*"
			if len(args) == 1 {
				pattern = args[0]
			}
			ctx, cancel := untilSignal(cmd.Context())
			defer cancel(nil)
			err := o.list(ctx, pattern, asJSON)
			if ctx.Err() != nil {
				return runError(ctx, err)
			}
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// list prints the locks that are held.
func (o *options) list(ctx context.Context, pattern string, asJSON bool) error {
	all, err := o.credentials()
	if err != nil {
		return err
	}
	c, err := o.connectTo(all)
	if err != nil {
		return err
	}
	defer c.close()
	l := &listing{c: c, prefix: o.prefix, asJSON: asJSON}
	text := l.progress
	if asJSON {
		text = func() string { return "" }
	}
	l.line = startStatusLine(os.Stderr, text)
	defer l.line.stop()
	if len(c) == 1 {
		err = l.scanNode(ctx, o, all[0], 0, pattern, func(name string, s shown) error {
			return l.print(newLockJSON(name, s), name, describe(s))
		})
	} else {
		err = l.listQuorum(ctx, o, all, pattern)
	}
	if err == nil && !l.printed && !asJSON {
		_ = l.line.above(func() error { warnf("no lock is held whose name matches %q", pattern); return nil })
	}
	return withStatus(err)
}

// listing prints locks, and counts.
type listing struct {
	c      connection
	prefix string
	asJSON bool
	line   *statusLine

	steps, locks atomic.Int64
	printed      bool
}

// scanStep is how many keys a step of a scan looks at, about: the COUNT of scan.lua.
const scanStep = 100

func (l *listing) progress() string {
	return fmt.Sprintf("scanned about %d keys, %d locks", l.steps.Load()*scanStep, l.locks.Load())
}

func (l *listing) print(j lockJSON, name, description string) error {
	l.printed = true
	return l.line.above(func() error {
		if l.asJSON {
			return printJSON(stdout, j)
		}
		_, err := fmt.Fprintf(stdout, "%s  %s\n", printable(name), description)
		return printed(err)
	})
}

// listQuorum prints what is held at any node, with the state that a quorum of them agrees on. A
// minority of nodes may fail.
func (l *listing) listQuorum(ctx context.Context, o *options, all []credentials, pattern string) error {
	at, failed := map[string][]int{}, 0
	for i := range all {
		err := l.scanNode(ctx, o, all[i], i, pattern, func(name string, _ shown) error {
			if nodes := at[name]; len(nodes) == 0 || nodes[len(nodes)-1] != i { // else it was scanned twice
				at[name] = append(nodes, i)
			}
			return nil
		})
		if err == nil {
			continue
		}
		err = fmt.Errorf("node %s: %w", all[i].label(), err)
		failed++
		if ctx.Err() != nil || !driver.Transient(err) || failed > (len(all)-1)/2 {
			return err
		}
		_ = l.line.above(func() error { warnf("%s", explain("ls", err)); return nil })
	}
	quorum, err := l.c.inspector(l.prefix)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(at)) {
		state, err := l.inspect(ctx, quorum, name)
		undecided := failed > 0 && ctx.Err() == nil && driver.Transient(err)
		if err != nil && !undecided {
			return err
		}
		j, what := newLockJSON(name, quorum.shown(state)), describe(quorum.shown(state))
		if undecided {
			j.Undecided, j.Waiters = true, -1
		}
		for _, i := range at[name] {
			j.Nodes = append(j.Nodes, all[i].label())
		}
		nodes := fmt.Sprintf("at %d of %d nodes", len(at[name]), len(all))
		switch {
		case undecided:
			what = fmt.Sprintf("held %s, and %d did not answer", nodes, failed)
		case !state.Held:
			what = fmt.Sprintf("held %s, which is no quorum", nodes)
		default:
			what += ", " + nodes
		}
		if err := l.print(j, name, what); err != nil {
			return err
		}
	}
	return nil
}

// scanNode calls found for each lock that is held at a node: one server, or all masters of a
// Cluster.
func (l *listing) scanNode(
	ctx context.Context, o *options, cred credentials, node int, pattern string, found func(string, shown) error,
) error {
	drv := l.c[node].drv
	d, err := newDetector(drv, l.prefix)
	if err != nil {
		return err
	}
	servers := connection{l.c[node]}
	if cred.kind == cluster {
		masters, err := cred.masters(ctx, drv)
		if err != nil {
			return fmt.Errorf("find the masters: %w", err)
		}
		if servers, err = o.connectTo(masters); err != nil {
			return err
		}
		defer servers.close()
	}
	for _, s := range servers {
		err := scanAll(ctx, s.drv, l.prefix, pattern, func(name, strategy string) error {
			state, err := l.inspect(ctx, d.strategies[strategy], name)
			if err != nil || !state.Held {
				return err
			}
			l.locks.Add(1)
			return found(name, shown{state, strategy})
		}, func() { l.steps.Add(1) })
		if err != nil {
			return err
		}
	}
	return nil
}

// inspect returns the state of a lock, free if the key holds none any more.
func (l *listing) inspect(ctx context.Context, asked locker.Locker, name string) (locker.State, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	state, err := locker.Inspect(ctx, asked, name)
	if noLock(err) {
		return locker.State{}, nil
	}
	return state, err
}

// masters returns how to connect to each master of a Cluster.
func (cred credentials) masters(ctx context.Context, drv driver.Driver) ([]credentials, error) {
	found, err := evalTexts(ctx, drv, mastersScript)
	if err != nil {
		return nil, err
	}
	var all []credentials
	for i := 0; i+1 < len(found); i += 2 {
		host, master := found[i], cred
		if host == "" {
			host, _, _ = net.SplitHostPort(cred.addrs[0])
		}
		master.kind, master.addrs = oneServer, []string{net.JoinHostPort(host, found[i+1])}
		all = append(all, master)
	}
	return all, nil
}

// label names a node of a quorum.
func (t target) label() string {
	label := strings.Join(t.addrs, ",")
	if t.db != 0 {
		label += fmt.Sprintf("/%d", t.db)
	}
	return label
}

// patternEscaper escapes what is special in a pattern of SCAN.
var patternEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// scanAll calls found for each name whose key may hold a lock, and step after each step.
func scanAll(ctx context.Context, drv driver.Driver, prefix, pattern string, found func(name, strategy string) error, step func()) error {
	for cursor, first := "0", true; first || cursor != "0"; first = false {
		reply, err := evalTexts(ctx, drv, scanScript, cursor, patternEscaper.Replace(prefix)+pattern)
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		for i := 1; i+1 < len(reply); i += 2 {
			name, ours := strings.CutPrefix(reply[i], prefix)
			if !ours || (locker.Request{Name: name}).Validate() != nil {
				continue
			}
			strategy, err := strategyFound(reply[i], reply[i+1])
			if err == nil {
				err = found(name, strategy)
			}
			if err != nil {
				return err
			}
		}
		cursor = reply[0]
		step()
	}
	return nil
}

// evalTexts runs a script that has no keys, and returns the texts that it replies: at least one.
func evalTexts(ctx context.Context, drv driver.Driver, script *driver.Script, args ...string) (texts []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reply, err := drv.Eval(ctx, script, nil, args)
	if err != nil {
		return nil, nameServer(drv, err)
	}
	for i := range reply.Len() {
		text, err := reply.Text(i)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil, errors.New("the reply is empty")
	}
	return texts, nil
}

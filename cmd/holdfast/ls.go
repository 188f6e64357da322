package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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
	var asJSON, foreign bool
	cmd := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List the locks that are held",
		Long: `List the locks that are held, of all strategies. PATTERN is that of SCAN, such as 'invoice:*'. At
a terminal they are a table. With --foreign, strings that Holdfast has not written are listed too: they
may be locks of other libraries.

It scans all keys of the server in small steps, and never blocks it: in a Cluster those of each
master, in a quorum those of each node. A lock that is acquired or released meanwhile may be missing
or listed twice.`,
		Args: takes(0, 1, "at most one PATTERN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := untilSignal(cmd.Context())
			defer cancel(nil)
			err := o.printLocks(ctx, patternOf(args), asJSON, foreign)
			if ctx.Err() != nil {
				return runError(ctx, err)
			}
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&foreign, "foreign", false, "list also strings that may be locks of other libraries")
	return cmd
}

func patternOf(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return "*"
}

// printLocks prints the held locks.
func (o *options) printLocks(ctx context.Context, pattern string, asJSON, foreign bool) error {
	l, err := o.newLockScan(pattern)
	if err != nil {
		return err
	}
	l.foreign = foreign
	defer l.c.close()
	text := l.progress
	if asJSON {
		text = func() string { return "" }
	}
	line := startStatusLine(os.Stderr, text)
	l.warn = func(err error) { _ = line.above(func() error { warnf("%s", explain("ls", err)); return nil }) }
	var rows []lockRow // of a table
	found := false
	l.emit = func(row lockRow) error {
		found = true
		if !asJSON && term.IsTerminal(int(os.Stdout.Fd())) {
			rows = append(rows, row)
			return nil
		}
		return line.above(func() error { return row.print(stdout, asJSON) })
	}
	err = l.scan(ctx)
	line.stop()
	if err == nil && !found && !asJSON {
		warnf("no lock is held whose name matches %q", pattern)
	}
	if len(rows) == 0 {
		return withStatus(err)
	}
	_, failed := io.WriteString(stdout, table(rows, time.Now())) // also those found before an error
	return withStatus(cmp.Or(err, printed(failed)))
}

// lockScan finds the locks that are held, and counts them.
type lockScan struct {
	o       *options
	c       connection
	all     []credentials
	pattern string
	foreign bool // also strings that may be locks of other libraries
	emit    func(lockRow) error
	warn    func(error) // about a node of a quorum, or a lock that the user may not see

	steps, locks atomic.Int64
}

func (o *options) newLockScan(pattern string) (*lockScan, error) {
	all, err := o.credentials()
	if err != nil {
		return nil, err
	}
	c, err := o.connectTo(all)
	if err != nil {
		return nil, err
	}
	return &lockScan{o: o, c: c, all: all, pattern: pattern}, nil
}

// scanStep is how many keys a step of a scan looks at, about: the COUNT of scan.lua.
const scanStep = 100

func (l *lockScan) progress() string {
	return fmt.Sprintf("scanned about %d keys, %d locks", l.steps.Load()*scanStep, l.locks.Load())
}

// scan calls emit for each lock that is held.
func (l *lockScan) scan(ctx context.Context) error {
	if len(l.c) > 1 {
		return l.scanQuorum(ctx)
	}
	return l.scanNode(ctx, 0, func(name string, s lockState) error { return l.emit(lockRow{name: name, lockState: s}) })
}

// scanQuorum calls emit for each lock that is held at any node, with the state at the quorum. A
// minority of nodes may fail.
func (l *lockScan) scanQuorum(ctx context.Context) error {
	at, failed := map[string][]int{}, 0
	for i, node := range l.all {
		err := l.scanNode(ctx, i, func(name string, _ lockState) error {
			if nodes := at[name]; len(nodes) == 0 || nodes[len(nodes)-1] != i { // else it was scanned twice
				at[name] = append(nodes, i)
			}
			return nil
		})
		if err == nil {
			continue
		}
		err = fmt.Errorf("node %s: %w", node.label(), err)
		failed++
		if ctx.Err() != nil || !driver.Transient(err) || failed > (len(l.all)-1)/2 {
			return err
		}
		l.warn(err)
	}
	quorum, err := l.c.inspector(l.o.prefix)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(at)) {
		state, err := l.inspect(ctx, quorum, name)
		row := lockRow{name: name, lockState: quorum.withStrategy(state)}
		row.undecided = failed > 0 && ctx.Err() == nil && driver.Transient(err)
		if err != nil && !row.undecided {
			return err
		}
		for _, i := range at[name] {
			row.nodes = append(row.nodes, l.all[i].label())
		}
		row.quorumText = fmt.Sprintf("at %d of %d nodes", len(at[name]), len(l.all))
		switch {
		case row.undecided:
			row.quorumText = fmt.Sprintf("held %s, and %d did not answer", row.quorumText, failed)
		case !state.Held:
			row.quorumText = fmt.Sprintf("held %s, which is no quorum", row.quorumText)
		}
		if err := l.emit(row); err != nil {
			return err
		}
	}
	return nil
}

// scanNode calls found for each lock that is held at a node: one server, or all masters of a
// Cluster.
func (l *lockScan) scanNode(ctx context.Context, node int, found func(string, lockState) error) error {
	drv, cred := l.c[node].drv, l.all[node]
	d, err := newDetector(drv, l.o.prefix)
	if err != nil {
		return err
	}
	servers := connection{l.c[node]}
	if cred.kind == cluster {
		masters, err := cred.masters(ctx, drv)
		if err != nil {
			return fmt.Errorf("find the masters: %w", err)
		}
		if servers, err = l.o.connectTo(masters); err != nil {
			return err
		}
		defer servers.close()
	}
	for _, s := range servers {
		err := scanAll(ctx, s.drv, l.o.prefix, l.pattern, l.foreign, func(name, strategy string) error {
			state, err := l.inspect(ctx, d.locker(strategy), name)
			if strategy == "redisson" && driver.CodeOf(err) == "NOPERM" { // the rules of other strategies lack its counter
				l.warn(fmt.Errorf("%s, of strategy redisson: %w", printable(name), err))
				return nil
			}
			if err != nil || !state.Held {
				return err
			}
			l.locks.Add(1)
			return found(name, lockState{state, strategy})
		}, func() { l.steps.Add(1) })
		if err != nil {
			return err
		}
	}
	return nil
}

// inspect returns the state of a lock, free if the key holds none any more.
func (l *lockScan) inspect(ctx context.Context, asked locker.Locker, name string) (locker.State, error) {
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

// patternEscaper escapes the special characters of a SCAN pattern.
var patternEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// scanAll calls found for each name whose key may hold a lock, and step after each step. A string that
// single has not written is one if foreign is true.
func scanAll(
	ctx context.Context, drv driver.Driver, prefix, pattern string, foreign bool,
	found func(name, strategy string) error, step func(),
) error {
	strs := "0"
	if foreign {
		strs = "1"
	}
	for cursor, first := "0", true; first || cursor != "0"; first = false {
		reply, err := evalTexts(ctx, drv, scanScript, cursor, patternEscaper.Replace(prefix)+pattern, strs)
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

// evalTexts runs a script without keys, and returns the texts of its reply: at least one.
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

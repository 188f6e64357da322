package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/locker"
)

// level says how bad a finding is for locks.
type level string

const (
	levelOK      level = "ok"
	levelUnknown level = "unknown" // it could not be checked
	levelWarning level = "warning" // a promise ends earlier, or another one does not hold as widely
	levelProblem level = "problem" // an assumption does not hold, or locks do not work
)

// finding is a result of check.
type finding struct {
	Server string `json:"server,omitempty"` // empty: all nodes of a quorum together
	Check  string `json:"check"`
	Level  level  `json:"level"`
	Text   string `json:"text"` // the fact and its meaning
	Advice string `json:"advice,omitempty"`
}

func passed(check, format string, args ...any) finding {
	return finding{Check: check, Level: levelOK, Text: fmt.Sprintf(format, args...)}
}

func unknown(check, format string, args ...any) finding {
	return finding{Check: check, Level: levelUnknown, Text: fmt.Sprintf(format, args...)}
}

func warning(check, advice, format string, args ...any) finding {
	return finding{Check: check, Level: levelWarning, Text: fmt.Sprintf(format, args...), Advice: advice}
}

func problem(check, advice, format string, args ...any) finding {
	return finding{Check: check, Level: levelProblem, Text: fmt.Sprintf(format, args...), Advice: advice}
}

// checkFlags are the flags of check.
type checkFlags struct {
	connect time.Duration
	asJSON  bool
}

func newCheck(o *options) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [NAME]",
		Short: "Check what locks assume of the server",
		Long: `Check what locks assume of the server: its version, eviction, persistence, replicas and topology,
its clock, the time of a round trip, and whether this user may do what locks need.

To check the rights, it acquires and releases locks, whose random names begin with NAME
("holdfast-check:" if not given), and removes all of their keys. Give the beginning of your names if
the user may only use keys of a pattern. Without --strategy it tries each strategy but redisson.

Exit status: 0 if nothing was found, 1 with a problem, 2 with a warning or something that could not
be checked; 64, 69, 70 and 77 as of run.`,
		Example: `  holdfast check
  holdfast check invoice: --strategy single`,
		Args: takes(0, 1, "at most one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "holdfast-check:"
			if len(args) == 1 {
				name = args[0]
			}
			if f.connect <= 0 {
				return fmt.Errorf("--connect-timeout %s: want more than 0", f.connect)
			}
			ctx, cancel := untilSignal(cmd.Context())
			defer cancel(nil)
			return f.run(ctx, o, name)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &f.asJSON)
	cmd.Flags().DurationVar(&f.connect, "connect-timeout", connectTimeout, "how long to try to reach each server at first")
	return cmd
}

func (f *checkFlags) run(ctx context.Context, o *options, name string) error {
	o.connectTimeout = f.connect
	strategies, err := o.strategiesToTry()
	if err != nil {
		return err
	}
	if err := (locker.Request{Name: throwaway(name)}).Validate(); err != nil {
		return err
	}
	targets, err := o.credentials()
	if err != nil {
		return err
	}
	worst, failed := levelOK, 0
	var lastErr error
	show := func(found ...finding) error {
		for _, one := range found {
			worst = worse(worst, one.Level)
			if err := one.print(stdout, f.asJSON, terminalWidth(os.Stdout)); err != nil {
				return err
			}
		}
		return nil
	}
	var all []facts
	for i, cred := range targets {
		where := strings.Join(cred.addrs, ",")
		quorum := len(targets) > 1
		var servers []facts
		var err error
		asked := make(chan struct{})
		go func() { servers, err = f.gather(ctx, cred); close(asked) }()
		select {
		case <-asked:
		case <-ctx.Done(): // the client may wait on, until the end of the program
		}
		if ctx.Err() != nil {
			return runError(ctx, ctx.Err())
		}
		if err != nil {
			failed, lastErr = failed+1, err
			unreached := problem("connection", hint(ctx, err, cred), "%s", trimPrefix(err))
			if err := show(unreached.at(where)); err != nil {
				return err
			}
			continue
		}
		for _, s := range servers {
			all = append(all, s)
			if err := show(s.findings(cred.target, quorum)...); err != nil {
				return err
			}
		}
		if err := show(o.tryStrategies(ctx, i, strategies, name)...); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return runError(ctx, ctx.Err())
		}
	}
	if failed == len(targets) {
		return statusOnly(operationStatus(lastErr)) // it was printed
	}
	if len(targets) > 1 {
		if err := show(quorumFindings(targets, all)...); err != nil {
			return err
		}
	}
	return statusOnly(map[level]int{levelOK: 0, levelProblem: 1, levelWarning: 2, levelUnknown: 2}[worst])
}

// worse returns the worse of two levels.
func worse(a, b level) level {
	order := map[level]int{levelOK: 0, levelUnknown: 1, levelWarning: 2, levelProblem: 3}
	if order[b] > order[a] {
		return b
	}
	return a
}

// at returns f as a finding about a server.
func (f finding) at(server string) finding {
	f.Server = server
	return f
}

// print prints a finding, for people with its advice on a second line. Lines wider than width are
// wrapped, unless it is 0.
func (f finding) print(w io.Writer, asJSON bool, width int) error {
	if asJSON {
		return printJSON(w, f)
	}
	where := ""
	if f.Server != "" {
		where = f.Server + "  "
	}
	const indent = "         "
	text := f.Check + ": " + strings.ReplaceAll(f.Text, "\n", "; ")
	lines := wrap(fmt.Sprintf("%-7s  %s", f.Level, where), text, indent, width)
	if f.Advice != "" {
		lines += wrap(indent, f.Advice, indent, width)
	}
	_, err := io.WriteString(w, lines)
	return printed(err)
}

// wrap returns text as lines of at most width characters, unless a word is longer or width is 0. They
// begin with first and then with indent.
func wrap(first, text, indent string, width int) string {
	if width <= 0 {
		return first + text + "\n"
	}
	var b strings.Builder
	line, words := first, 0
	for word := range strings.FieldsSeq(text) {
		if words > 0 && utf8.RuneCountInString(line+" "+word) > width {
			b.WriteString(line + "\n")
			line, words = indent, 0
		}
		if words > 0 {
			line += " "
		}
		line, words = line+word, words+1
	}
	return b.String() + line + "\n"
}

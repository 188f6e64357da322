package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/locker/driver"
)

func newTop(o *options) *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top [PATTERN]",
		Short: "Show the locks that are held, those with most waiters first, until interrupted",
		Long: `Show the locks that are held, those with most waiters first, until it is interrupted: the table
of ls, drawn again every --interval. PATTERN is that of SCAN, such as 'invoice:*'.

Each time it scans all keys of the server in small steps, as ls does. An outage is shown, and waited
out.`,
		Args: takes(0, 1, "at most one PATTERN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case interval <= 0:
				return fmt.Errorf("--interval %s: want more than 0", interval)
			case !term.IsTerminal(int(os.Stdout.Fd())):
				return errors.New("standard output is no terminal: use ls, or watch for one lock")
			}
			ctx, cancel := untilSignal(cmd.Context())
			defer cancel(nil)
			return o.top(ctx, patternOf(args), interval)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "how often to list")
	return cmd
}

// top draws the locks until ctx ends.
func (o *options) top(ctx context.Context, pattern string, interval time.Duration) error {
	l, err := o.newLockScan(pattern)
	if err != nil {
		return err
	}
	defer l.c.close()
	var s screen
	for {
		var locks []lockRow
		trouble := ""
		l.emit = func(row lockRow) error { locks = append(locks, row); return nil }
		l.warn = func(err error) { trouble = explain("top", err) }
		err := l.scan(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			slices.SortFunc(locks, func(a, b lockRow) int {
				return cmp.Or(cmp.Compare(b.Waiters, a.Waiters), cmp.Compare(a.name, b.name))
			})
			s.locks, s.at, s.trouble = locks, time.Now(), trouble
		case driver.Transient(err):
			s.trouble = explain("top", err)
		default:
			return withStatus(err)
		}
		s.draw(os.Stdout)
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return nil
		}
	}
}

// screen is the content of the terminal.
type screen struct {
	locks   []lockRow
	at      time.Time // of the locks; zero: not known yet
	trouble string    // of the latest attempt to list; "": none
}

// draw replaces the content of a terminal.
func (s screen) draw(file *os.File) {
	if !inForeground(file) {
		return
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 || height == 0 {
		width, height = 80, 24
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range s.lines(height - 1) { // a newline in the last line would scroll
		b.WriteString(truncate(escape(line), width-1) + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, _ = file.WriteString(b.String()) // the next drawing may succeed
}

// lines returns the content in at most that many lines.
func (s screen) lines(most int) []string {
	waiting := 0
	for _, l := range s.locks {
		waiting += max(l.Waiters, 0)
	}
	lines := []string{fmt.Sprintf("%s  %s, %d waiting", s.at.Format(time.TimeOnly), count(len(s.locks), "lock"), waiting)}
	if s.at.IsZero() {
		lines[0] = "no answer yet"
	}
	if s.trouble != "" {
		lines = append(lines, strings.ReplaceAll(s.trouble, "\n", "; ")) // joined errors have lines
	}
	if len(s.locks) > 0 {
		lines = append(lines, strings.Split(strings.TrimSuffix(table(s.locks, s.at), "\n"), "\n")...)
	}
	if over := len(lines) - max(most, 1); over > 0 {
		lines = lines[:max(most, 1)]
		if most > 1 {
			lines[most-1] = fmt.Sprintf("... and %d more", over+1)
		}
	}
	return lines
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

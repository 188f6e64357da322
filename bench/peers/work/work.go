//go:build unix

// Package work has the works for a comparison of the contenders.
package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/holdfast-go/holdfast/bench/peers/contender"
	"github.com/holdfast-go/holdfast/bench/peers/report"
)

// Work is a task of contenders, and its report.
type Work struct {
	Name    string // of -only, and of the files
	Title   string
	Rounds  int // in each, all contenders take their turns
	Setting string
	Metrics []report.Metric
	Pivots  []string // metrics with a table of their own, a column for each setting
	Plots   []report.Plot

	role     contender.Role
	settings func(Size) []int // values of Setting; nil: nothing varies
	paired   bool             // the settings of one contender are measured one after another: they are compared
	measure  func(ctx context.Context, e *env, c contender.Contender, setting int) (report.Row, error)
	relate   func(round []report.Row) // adds comparisons of the rows of a round; may be nil
}

// Size is how large the works are.
type Size int

// The sizes.
const (
	Quick Size = iota // for tests: checks that it works, measures nothing
	Usual
	Long // takes in the largest settings
)

// All are the works in their order.
func All() []Work {
	return []Work{free, names, contended, processes, handOver, redlock, frozen, kept, waiters, waitersOf8}
}

// Text returns the tables of t as Markdown.
func (w Work) Text(t report.Table) string {
	if len(w.Pivots) == 0 {
		return t.Markdown()
	}
	return t.Pivots(w.Pivots)
}

// Run measures the work: in each round every contender at every setting, in the other direction in
// every second round. It reports each measurement to progress.
func (w Work) Run(ctx context.Context, opts Options, progress io.Writer) (table report.Table, err error) {
	table = report.Table{Setting: w.Setting, Metrics: w.Metrics}
	e, err := newEnv(ctx, opts)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	rounds := w.Rounds
	if opts.Rounds > 0 {
		rounds = opts.Rounds
	} else if opts.Size == Quick {
		rounds = 1
	}
	settings := []int{0}
	if w.settings != nil {
		settings = w.settings(opts.Size)
	}
	contenders := contender.With(w.role)
	for round := range rounds {
		var rows []report.Row
		for _, turn := range w.turns(contenders, settings) {
			if err := ctx.Err(); err != nil {
				return table, err
			}
			row, err := w.one(ctx, e, turn.contender, turn.setting)
			if err != nil {
				return table, fmt.Errorf("%s, %s: %w", w.Name, turn.contender.Name, err)
			}
			row.Round = round + 1
			fmt.Fprintf(progress, "%s, round %d of %d: %s\n", w.Name, row.Round, rounds, w.line(row))
			rows = append(rows, row)
		}
		if w.relate != nil {
			w.relate(rows)
		}
		table.Rows = append(table.Rows, rows...)
		slices.Reverse(contenders)
	}
	return table, nil
}

// turn is one measurement of a round.
type turn struct {
	contender contender.Contender
	setting   int
}

// turns returns the measurements of a round in their order: compared ones are neighbours.
func (w Work) turns(contenders []contender.Contender, settings []int) (all []turn) {
	if w.paired {
		for _, c := range contenders {
			for _, s := range settings {
				all = append(all, turn{c, s})
			}
		}
		return all
	}
	for _, s := range settings {
		for _, c := range contenders {
			all = append(all, turn{c, s})
		}
	}
	return all
}

func (w Work) one(ctx context.Context, e *env, c contender.Contender, setting int) (report.Row, error) {
	if err := e.flush(); err != nil {
		return report.Row{}, err
	}
	row, err := w.measure(ctx, e, c, setting)
	row.Contender, row.Setting = c.Name, setting
	return row, err
}

// line is a row for the progress.
func (w Work) line(r report.Row) string {
	text := r.Contender
	if w.Setting != "" {
		text += fmt.Sprintf(", %d %s", r.Setting, w.Setting)
	}
	if r.Hang != "" {
		return text + ": " + r.Hang
	}
	separator := ": "
	for _, m := range w.Metrics {
		v, ok := r.Values[m.Name]
		if !ok || m.Heading == "" || m.IsStrict && v == 0 {
			continue
		}
		text += separator + m.Format(v) + " " + m.Heading
		separator = ", "
	}
	return text
}

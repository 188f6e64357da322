//go:build unix

// Peers runs the same work over the bare Redis clients, other lock libraries and Holdfast, and
// reports the costs: a line on stderr for each measurement, Markdown tables on stdout, and CSV and
// SVG files. It starts the servers itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/peers/load"
	"github.com/holdfast-go/holdfast/bench/peers/report"
	"github.com/holdfast-go/holdfast/bench/peers/work"
)

func main() {
	if os.Getenv(load.WorkerVariable) != "" {
		if err := load.Worker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "peers:", err)
			os.Exit(statusFailed)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := program(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit statuses.
const (
	statusDone     = 0
	statusViolated = 1 // two holders were in a section at once
	statusFailed   = 2
)

// program is the program with these arguments; it returns the exit status.
func program(ctx context.Context, args []string, out, progress io.Writer) int {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(progress)
	dir := flags.String("out", filepath.Join("docs", "performance"), "folder for the CSV and SVG files")
	page := flags.String("page", "", "Markdown page whose tables are replaced; default: none")
	quick := flags.Bool("quick", false, "run every work for a moment only, to see that it works")
	long := flags.Bool("long", false, "keep up to 100,000 locks alive, not 10,000")
	rounds := flags.Int("rounds", 0, "rounds of each work; default: its own number")
	only := flags.String("only", "", "works, separated by commas; default: all of "+strings.Join(workNames(), ", "))
	if err := flags.Parse(args); err != nil {
		return statusFailed
	}
	p := &peers{dir: *dir, page: *page, out: out, progress: progress, opts: work.Options{Size: work.Usual, Rounds: *rounds}}
	switch {
	case *quick:
		p.opts.Size = work.Quick
	case *long:
		p.opts.Size = work.Long
	}
	violations, err := p.run(ctx, *only)
	switch {
	case err != nil:
		fmt.Fprintln(progress, "peers:", err)
		return statusFailed
	case violations > 0:
		fmt.Fprintf(progress, "peers: %.0f violations of mutual exclusion\n", violations)
		return statusViolated
	}
	return statusDone
}

func workNames() (names []string) {
	for _, w := range work.All() {
		names = append(names, w.Name)
	}
	return names
}

// peers is one run of the program.
type peers struct {
	dir, page     string
	out, progress io.Writer
	opts          work.Options
}

// run runs the works named in only, or all, and returns the violations of exclusion.
func (p *peers) run(ctx context.Context, only string) (violations float64, err error) {
	works, err := selected(only)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return 0, err
	}
	server, err := work.Server(ctx)
	if err != nil {
		return 0, err
	}
	for i, w := range works {
		fmt.Fprintf(p.progress, "work %d of %d, %s: %s\n", i+1, len(works), w.Name, w.Title)
		table, err := w.Run(ctx, p.opts, p.progress)
		if err != nil {
			return violations, err
		}
		for _, r := range table.Rows {
			violations += r.Values["violations"]
		}
		if err := p.write(w, table, server); err != nil {
			return violations, err
		}
	}
	return violations, nil
}

func selected(only string) ([]work.Work, error) {
	works := work.All()
	if only == "" {
		return works, nil
	}
	names := strings.Split(only, ",")
	for _, name := range names {
		if !slices.Contains(workNames(), name) {
			return nil, fmt.Errorf("no work is named %q; the works are %s", name, strings.Join(workNames(), ", "))
		}
	}
	return slices.DeleteFunc(works, func(w work.Work) bool { return !slices.Contains(names, w.Name) }), nil
}

// write writes the reports of a work.
func (p *peers) write(w work.Work, table report.Table, server string) error {
	rounds := table.Rows[len(table.Rows)-1].Round
	text := fmt.Sprintf("%s\n%d rounds, %d cores, %s, %s, %s.\n",
		w.Text(table), rounds, runtime.NumCPU(), strings.Replace(runtime.Version(), "go", "Go ", 1), server, time.Now().UTC().Format(time.DateOnly))
	text = strings.Replace(text, "\n1 rounds", "\n1 round", 1)
	fmt.Fprintf(p.out, "## %s\n\n%s\n", w.Title, text)
	if p.page != "" {
		if err := report.Replace(p.page, w.Name, text); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(p.dir, w.Name+".csv"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := table.WriteCSV(f); err != nil {
		return err
	}
	for _, plot := range w.Plots {
		if err := plot.Draw(table, filepath.Join(p.dir, plot.File+".svg")); err != nil {
			return err
		}
	}
	return nil
}

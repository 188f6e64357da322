package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
)

func main() {
	if os.Getenv(workerVariable) != "" {
		if err := worker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "torture:", err)
			os.Exit(2)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := program(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

// The exit statuses.
const (
	statusKept   = 0
	statusBroken = 1
	statusFailed = 2
)

// program is the program with these arguments; it returns the exit status.
func program(ctx context.Context, args []string, out io.Writer) int {
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.SetOutput(out)
	seconds := flags.Int("seconds", 60, "how long clients work; the starts of servers and the checks take longer")
	seed := flags.Uint64("seed", 0, "of the rounds, the faults and the clients; 0: a random one")
	dir := flags.String("out", "", "folder for the histories of violations; default: a new one among temporary files")
	on := flags.String("on", "", "topologies, separated by commas, that take turns; default: all, in two strands at once")
	kinds := flags.String("strategies", "", "those that are tried, separated by commas; default: all that suit a topology")
	beside := flags.String("beside", "", "a trouble with bystanders that each round has; default: a random one in every fourth round")
	first := flags.Bool("first", false, "end after the round of the first violation")
	check := flags.String("check", "", "a history to check again, instead of a run")
	if err := flags.Parse(args); err != nil {
		return statusFailed
	}
	if *check != "" {
		return checkFile(*check, out)
	}
	r := &run{out: out, dir: *dir, strands: everywhere, untilViolation: *first}
	if err := errors.Join(r.setTopologies(*on), r.setStrategies(*kinds), r.setTrouble(*beside)); err != nil {
		fmt.Fprintln(out, "torture:", err)
		return statusFailed
	}
	for *seed == 0 {
		*seed = rand.Uint64() >> 1
	}
	r.seed = *seed
	err := r.play(ctx, time.Duration(*seconds)*time.Second)
	if err == nil {
		err = r.checker.inconclusive()
	}
	if err != nil {
		fmt.Fprintln(out, "torture:", err)
	}
	switch {
	case r.checker != nil && r.checker.violations > 0:
		return statusBroken
	case err != nil:
		return statusFailed
	}
	return statusKept
}

func checkFile(path string, out io.Writer) int {
	events, rules, err := history.Load(path)
	if err != nil {
		fmt.Fprintln(out, "torture:", err)
		return statusFailed
	}
	res := history.Check(events, rules, 0)
	fmt.Fprintf(out, "%s: %d operations, %s %s\n", res.Name, res.Operations, res.Verdict, res.Reason)
	if res.Verdict == history.Violation {
		return statusBroken
	}
	return statusKept
}

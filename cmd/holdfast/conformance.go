package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

func newConformance(o *options) *cobra.Command {
	var pattern string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Run the suite of the library's contracts against this server",
		Long: `Run the suite of the library's contracts (package conformance) against one server, with the chosen
--client and --strategy. Others may use the server meanwhile: cases that stop, freeze, flush or
reconfigure it, or that need several servers, are left out. Lost replies and cut connections are
made by a proxy in this process; behind TLS they are left out too.

Keys have "conformance." and random text in their names, and are removed at the end. It takes about
a minute, and expects an answer within a second.

Exit status: 0 if no case failed, 1 if one did or left a key, 128+n if signal n ended it; 64, 69, 70
and 77 as of run.`,
		Args: takes(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := regexp.Compile(pattern)
			if err != nil {
				return fmt.Errorf("--run: %w", err)
			}
			return o.runConformance(cmd.Context(), chosen, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVar(&pattern, "run", "", "run only the cases whose names match this regular expression")
	return cmd
}

func (o *options) runConformance(ctx context.Context, chosen *regexp.Regexp, asJSON bool) error {
	creds, err := o.credentials()
	if err != nil {
		return err
	}
	cred := creds[0]
	switch {
	case len(creds) > 1 || cred.kind != oneServer || cred.network != "tcp":
		return errors.New("conformance needs one server, by redis:// or rediss://: it tests a Cluster, Sentinels and a quorum " +
			"on servers that it starts itself, by go test")
	case cred.db != 0 || o.prefix != "":
		return errors.New("conformance uses database 0, and names of its own without a --prefix")
	}
	h, err := o.harness(cred)
	if err != nil {
		return err
	}
	ctx, cancel := untilSignal(ctx)
	defer cancel(nil)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a closed standard output must not leave keys
	reached, cancelReached := context.WithTimeout(ctx, answerTimeout)
	defer cancelReached()
	c, err := o.connectTo(creds)
	if err != nil {
		return err
	}
	_, err = c[0].drv.Eval(reached, pingScript, nil, nil)
	c.close()
	if err != nil {
		return runError(ctx, err)
	}

	var sum summary
	target := drivertest.Target{
		Kind: drivertest.Single, Addrs: cred.addrs, Username: cred.user, Password: cred.password, TLS: cred.tlsConfig,
	}
	err = conformance.RunAt(ctx, h, target, chosen.MatchString, func(r conformance.Result) {
		sum.add(r)
		err := printResult(stdout, r, asJSON)
		switch {
		case errors.Is(err, syscall.EPIPE):
			cancel(&signalError{syscall.SIGPIPE})
		case err != nil:
			cancel(err)
		}
	})
	if ctx.Err() != nil {
		return runError(ctx, context.Cause(ctx))
	}
	if err == nil && sum == (summary{}) {
		return fmt.Errorf("--run %q: no case has a name like that; without --run each case is printed", chosen)
	}
	if err := sum.print(stdout, asJSON); err != nil {
		return withStatus(err)
	}
	if err != nil {
		return &statusError{1, err}
	}
	if sum.Failed > 0 {
		return statusOnly(1)
	}
	return nil
}

var pingScript = driver.NewScript(`return 1`)

// harness returns the harness of the chosen strategy over the chosen client.
func (o *options) harness(cred credentials) (conformance.Harness, error) {
	name, permits, err := parseStrategy(o.strategy, false)
	if err != nil {
		return conformance.Harness{}, err
	}
	if permits > 1 {
		return conformance.Harness{}, errors.New("conformance chooses the permits itself: give --strategy semaphore:1")
	}
	h := conformance.Harness{
		Name: name + " over " + o.client,
		Dial: func(tb testing.TB, at drivertest.Target) (driver.Driver, error) {
			cred := cred
			cred.addrs, cred.user, cred.password = at.Addrs, at.Username, at.Password
			s, err := clients[o.client](cred)
			if err != nil {
				return nil, err
			}
			tb.Cleanup(s.close)
			return s.drv, nil
		},
	}
	switch name {
	case "reentrant":
		h.New = func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return reentrant.New(drv, reentrant.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
		}
		h.Can = conformance.Capabilities{Reentrant: true, Hash: true, MinHold: true}
	case "rwhash":
		h.New = func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return rwhash.New(drv, rwhash.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
		}
		h.Can = conformance.Capabilities{Shared: true, Convert: true, Hash: true, MinHold: true}
	case "redisson":
		h.New = func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return redisson.New(drv, redisson.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
		}
		h.Can = conformance.Capabilities{Hash: true, MinHold: true, ReleaseTimeout: true, EndlessCounter: true}
		h.Siblings = redissonSiblings
	case "semaphore":
		h.NewSemaphore = func(drv driver.Driver, permits int, bound conformance.Timeouts) (locker.Locker, error) {
			return semaphore.New(drv, semaphore.Config{Permits: permits, AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
		}
		h.New = func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return h.NewSemaphore(drv, 1, bound)
		}
		h.Can = conformance.Capabilities{Hash: true, Fair: true, MinHold: true}
	}
	return h, nil // without New the suite runs single
}

// redissonSiblings are the names beside the key of a lock of redisson.
var redissonSiblings = &conformance.Siblings{
	FenceKey:    func(name string) string { return besideOfRedisson("redisson_lock_token:", name) },
	IsFenceKey:  func(key string) bool { return strings.HasPrefix(key, "redisson_lock_token:") },
	WakeChannel: func(name string) string { return besideOfRedisson("redisson_lock__channel:", name) },
}

// besideOfRedisson returns "" for a name that redisson refuses.
func besideOfRedisson(prefix, name string) string {
	switch open, closed := strings.Contains(name, "{"), strings.Contains(name, "}"); {
	case open != closed:
		return ""
	case open:
		return prefix + name
	default:
		return prefix + "{" + name + "}"
	}
}

// resultJSON is the result of a case, in JSON.
type resultJSON struct {
	Case     string   `json:"case"`
	Proves   string   `json:"proves"`
	Result   string   `json:"result"` // "passed", "failed" or "left out"
	LeftOut  string   `json:"leftOut,omitempty"`
	Why      string   `json:"why,omitempty"` // of a failed case
	Failures []string `json:"failures,omitempty"`
	Took     float64  `json:"took"` // in seconds
}

func newResultJSON(r conformance.Result) resultJSON {
	j := resultJSON{Case: r.Case, Proves: r.Proves, Result: "passed", LeftOut: r.LeftOut, Took: r.Took.Seconds()}
	switch {
	case len(r.Failures) > 0:
		j.Result, j.Why, j.Failures = "failed", r.Why, r.Failures
	case r.LeftOut != "":
		j.Result = "left out"
	}
	return j
}

// printResult prints the result of a case, for people on one line unless it failed.
func printResult(w io.Writer, r conformance.Result, asJSON bool) error {
	j := newResultJSON(r)
	if asJSON {
		return printJSON(w, j)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s  %s (%s)", j.Result, j.Case, j.Proves)
	switch j.Result {
	case "left out":
		fmt.Fprintf(&b, ": %s\n", j.LeftOut)
	default:
		fmt.Fprintf(&b, ", %.1f s\n", j.Took)
	}
	for _, text := range j.Failures {
		fmt.Fprintf(&b, "          %s\n", strings.ReplaceAll(text, "\n", "\n          "))
	}
	if j.Why != "" {
		fmt.Fprintf(&b, "          why this case: %s\n", j.Why)
	}
	_, err := io.WriteString(w, b.String())
	return printed(err)
}

// summary counts the cases.
type summary struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	LeftOut int `json:"leftOut"`
}

func (s *summary) add(r conformance.Result) {
	switch newResultJSON(r).Result {
	case "passed":
		s.Passed++
	case "failed":
		s.Failed++
	default:
		s.LeftOut++
	}
}

func (s *summary) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, s)
	}
	_, err := fmt.Fprintf(w, "%d cases passed, %d failed, %d were left out\n", s.Passed, s.Failed, s.LeftOut)
	return printed(err)
}

package death_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/reliability/workload"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// childVariable in the environment makes this executable one of children, as its value says.
const childVariable = "HOLDFAST_DEATH_CHILD"

// children are the kinds of child processes of this executable.
var children = map[string]func(args []string, in io.Reader, out io.Writer) error{"candidate": campaign, "holder": hold}

// slack allows for a busy machine. A longer operation hangs.
const slack = 10 * time.Second

// scope is the part of a testing.TB needed to dial, in the holder's process.
type scope struct{ testing.TB }

// Helper implements testing.TB.
func (scope) Helper() {}

// Cleanup implements testing.TB; the end of the process cleans up.
func (scope) Cleanup(func()) {}

// hold is the holder: args are the provider, the strategy, the address, the name, the TTL, and
// whether a watchdog renews. It acquires the lock and prints "held" with the fencing token. Then it
// executes each line of in, and prints the result:
//
//	renewed    wait for the next renewal or the end of the lock: "renewed" or Err
//	state      "held" or Err
//	abandon    forget the lock, and go on running
//	release    release it
func hold(args []string, in io.Reader, out io.Writer) error {
	provider, strategy, addr, name, watched := args[0], args[1], args[2], args[3], args[5] == "true"
	ttl, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	l, err := open(provider, strategy, drivertest.Target{Kind: drivertest.Single, Addrs: []string{addr}})
	if err != nil {
		return err
	}
	if watched {
		l = locker.Chain(l, locker.Must(watchdog.New(watchdog.Config{})))
	}
	renewed := make(chan struct{}, 1000)
	ctx := locktrace.With(context.Background(), &locktrace.Trace{Renewed: func(_ context.Context, i locktrace.RenewedInfo) {
		if i.Err == nil {
			renewed <- struct{}{}
		}
	}})
	lock, err := l.Acquire(ctx, all(strategy, name, ttl))
	for end := time.Now().Add(slack); err != nil && time.Now().Before(end); { // on a busy machine the lease may end first
		lock, err = l.Acquire(ctx, all(strategy, name, ttl))
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "held", lock.Fence())
	obey(ctx, lock, renewed, in, out)
	return nil
}

// all returns an exclusive request: of a semaphore it requests all permits.
func all(strategy, name string, ttl time.Duration) locker.Request {
	req := locker.Request{Name: name, TTL: ttl, Fenced: true}
	if strategy == "semaphore" {
		req.Permits = workload.Permits
	}
	return req
}

// open opens a Locker in a child.
func open(provider, strategy string, target drivertest.Target) (locker.Locker, error) {
	c := clients.All[slices.IndexFunc(clients.All, func(c clients.Client) bool { return c.Name == provider })]
	drv, err := c.Dial(scope{}, target)
	if err != nil {
		return nil, err
	}
	return workload.Strategies[strategy].Open(drv)
}

// obey executes each line of in with a lock.
func obey(ctx context.Context, lock *locker.Lock, renewed <-chan struct{}, in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case "renewed":
			select {
			case <-renewed:
				fmt.Fprintln(out, "renewed")
			case <-lock.Done():
				fmt.Fprintln(out, lock.Err())
			}
		case "state":
			if err := lock.Err(); err != nil {
				fmt.Fprintln(out, err)
			} else {
				fmt.Fprintln(out, "held")
			}
		case "abandon":
			lock = nil
			fmt.Fprintln(out, "abandoned")
		case "release":
			fmt.Fprintln(out, "released", errors.Is(lock.Release(ctx), locker.ErrLost))
		}
	}
}

// holder is the test's side of a child process.
type holder struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
	fence int64
}

// start starts a holder, and returns once it holds.
func start(t *testing.T, args ...string) *holder {
	t.Helper()
	h := spawn(t, "holder", args...)
	check.Must(t, h.isHeld(h.hear()))
	return h
}

// isHeld reads the fencing token from a child's line about its acquisition.
func (h *holder) isHeld(line string) (err error) {
	word, fence, _ := strings.Cut(line, " ")
	if h.fence, err = strconv.ParseInt(fence, 10, 64); word != "held" || err != nil {
		return fmt.Errorf("the child says %q, want that it holds", line)
	}
	return nil
}

func spawn(t testing.TB, child string, args ...string) *holder {
	t.Helper()
	self, err := os.Executable()
	check.Must(t, err)
	h := &holder{t: t, cmd: exec.Command(self, args...)}
	h.cmd.Env = append(os.Environ(), childVariable+"="+child)
	h.cmd.Stderr = os.Stderr
	in, err := h.cmd.StdinPipe()
	check.Must(t, err)
	h.in = in
	out, err := h.cmd.StdoutPipe()
	check.Must(t, err)
	check.Must(t, h.cmd.Start())
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	})
	h.lines = bufio.NewScanner(out)
	return h
}

// hear returns the next line of the child.
func (h *holder) hear() string {
	h.t.Helper()
	if !h.lines.Scan() {
		h.t.Fatalf("the child ended: %v", h.lines.Err())
	}
	return h.lines.Text()
}

// tell sends a line to the child, and returns its answer.
func (h *holder) tell(line string) string {
	h.t.Helper()
	if _, err := fmt.Fprintln(h.in, line); err != nil {
		h.t.Fatal(err)
	}
	return h.hear()
}

// outlasts reports whether it was renewed to the end of its first lease. On a machine busy for as
// long, it may be lost before.
func (h *holder) outlasts() bool {
	h.t.Helper()
	for range 3 {
		if h.tell("renewed") != "renewed" {
			return false
		}
	}
	return true
}

func (h *holder) signal(s os.Signal) {
	h.t.Helper()
	check.Must(h.t, h.cmd.Process.Signal(s))
}

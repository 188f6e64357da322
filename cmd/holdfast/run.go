package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/locker"
)

// commandFlags are the flags of run and leader.
type commandFlags struct {
	ttl     time.Duration
	grace   time.Duration
	connect time.Duration
	onLost  string
	note    string

	noteSince func(time.Time) string // if note is empty
}

func (f *commandFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&f.ttl, "ttl", locker.DefaultTTL,
		"how long the lock lasts if this program dies; it is renewed after a third of that")
	flags.DurationVar(&f.grace, "grace", 10*time.Second,
		"how long after SIGTERM the command gets SIGKILL, once the lock is lost")
	flags.DurationVar(&f.connect, "connect-timeout", connectTimeout, "how long to try to reach the server at first")
	flags.StringVar(&f.onLost, "on-lost", "kill", "what happens to the command when the lock is lost: kill or warn")
	flags.StringVar(&f.note, "note", "", "what others see of the holder; if empty: user, host, process, since when, and the command\nwith its arguments, which may be secret")
	_ = cmd.RegisterFlagCompletionFunc("on-lost", cobra.FixedCompletions([]string{"kill", "warn"}, cobra.ShellCompDirectiveNoFileComp))
}

// check makes the checks beyond those of the parser, and returns the name and the command to run. A
// name with a leading dash is given as -- NAME -- COMMAND.
func (f *commandFlags) check(cmd *cobra.Command, args []string) (name string, argv []string, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash == 0 && len(args) > 1 && args[1] == "--" {
		dash, args = 1, slices.Delete(args, 1, 2)
	}
	switch {
	case dash != 1 || len(args) < 2:
		return "", nil, fmt.Errorf("want one name, -- and a command, such as: holdfast %s nightly -- make report",
			cmd.Name())
	case f.onLost != "kill" && f.onLost != "warn":
		return "", nil, fmt.Errorf("--on-lost %q: want kill or warn", f.onLost)
	case f.ttl != 0 && (f.ttl < minTTL || f.ttl > locker.MaxTTL):
		return "", nil, fmt.Errorf("--ttl %s: want 3ms to 576h (24 days)", f.ttl)
	case f.grace < 0:
		return "", nil, fmt.Errorf("--grace %s: want 0 or more", f.grace)
	case f.connect <= 0:
		return "", nil, fmt.Errorf("--connect-timeout %s: want more than 0", f.connect)
	}
	name, argv = args[0], args[1:]
	if f.note == "" {
		f.noteSince = newNote(argv)
	}
	return name, argv, nil
}

// newNote returns a function of a holder's note: user, host, process, begin and command.
func newNote(argv []string) func(since time.Time) string {
	name := "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return func(since time.Time) string {
		note := fmt.Sprintf("%s@%s pid %d since %s: %s", name, host, os.Getpid(), since.UTC().Format(time.RFC3339),
			strings.Join(argv, " "))
		return strings.ToValidUTF8(note[:min(len(note), locker.MaxNameLen)], "")
	}
}

// noted sets the note of each attempt, unless note is nil: so a hold has its begin in the note.
type noted struct {
	locker.Locker

	note func(time.Time) string
}

// Unwrap returns the wrapped Locker.
func (n noted) Unwrap() locker.Locker { return n.Locker }

// Acquire implements locker.Locker.
func (n noted) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if n.note != nil {
		req.Note = n.note(time.Now())
	}
	return n.Locker.Acquire(ctx, req)
}

// minTTL is the shortest lease of the strategies.
const minTTL = 3 * time.Millisecond

type runFlags struct {
	commandFlags

	noWait, shared, fenced bool
	maxWait, minHold       time.Duration
	heldStatus             int
	owner                  string
}

func newRun(o *options) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run NAME [flags] -- COMMAND [ARGS...]",
		Short: "Run a command under a lock",
		Long: `Run a command under a lock: acquire it, wait if another holds it, renew it while the command
runs, and release it when the command ends. A command that hangs keeps the lock: bound it, as by
timeout of GNU coreutils.

The command gets HOLDFAST_NAME and, with --fenced, HOLDFAST_FENCE in its environment. It runs in a
process group of its own, which gets the signals that holdfast gets. If the lock is lost, the group
gets SIGTERM and, after --grace, SIGKILL.

Exit status: that of the command, 128+n if signal n ended it, or
  64  the arguments are wrong            75  another holds the lock
  69  the server did not answer          77  the server refused the password or a command
  70  another failure                    79  the lock was lost while the command ran
  126 the command cannot be run          127 the command was not found`,
		Example: `  holdfast run nightly --no-wait -- /usr/local/bin/report
  holdfast run tick --no-wait --min-hold 30s --held-status 0 -- timeout 50m /usr/local/bin/tick
  holdfast run db --fenced --max-wait 1m -- sh -c 'migrate --fence "$HOLDFAST_FENCE"'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := f.check(cmd, args)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("ttl") {
				f.ttl = 0 // the default, or --min-hold if longer
			}
			if f.maxWait < 0 {
				return fmt.Errorf("--max-wait %s: want 0 or more", f.maxWait)
			}
			if f.heldStatus < 0 || f.heldStatus > 255 {
				return fmt.Errorf("--held-status %d: want 0 to 255", f.heldStatus)
			}
			return f.run(cmd.Context(), o, name, argv)
		},
		ValidArgsFunction: o.completeName,
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait if another holds the lock")
	flags.DurationVar(&f.maxWait, "max-wait", 0,
		"how long to wait for the lock; for ever if 0. The server's first answer is awaited for\n--connect-timeout at most")
	flags.DurationVar(&f.minHold, "min-hold", 0,
		"how long the name stays taken from the acquire on, even if the command ends earlier")
	flags.BoolVar(&f.shared, "shared", false, "hold the lock with other shared holders (strategy rwhash)")
	flags.BoolVar(&f.fenced, "fenced", false, "pass a fencing token to the command, as HOLDFAST_FENCE")
	flags.StringVar(&f.owner, "owner", "", "who holds a reentrant lock: the same owner may acquire it again")
	flags.IntVar(&f.heldStatus, "held-status", statusHeld,
		"the exit status if another holds the lock; with 0 nothing is printed")
	return cmd
}

func (f *runFlags) run(ctx context.Context, o *options, name string, argv []string) error {
	path, err := lookPath(argv[0])
	if err != nil {
		return err
	}
	o.connectTimeout = f.connect
	servers, err := o.credentials()
	if err != nil {
		return err
	}
	progress := showWait(name, servers)
	l, c, err := o.open(f.shared, f.noteSince)
	if err != nil {
		progress.stop()
		return err
	}
	defer c.close()
	req := locker.Request{
		Name: name, TTL: f.ttl, MinHold: f.minHold, MaxWait: f.maxWait, NoWait: f.noWait,
		Fenced: f.fenced, Owner: f.owner, Note: f.note,
	}
	if f.shared {
		req.Mode = locker.Shared
	}

	signals := catchSignals()
	defer signals.stop()
	waiting, interrupted := signals.interrupting(ctx)
	lock, err := acquire(waiting, l, req, f.connect, progress.held)
	progress.stop()
	switch sig := interrupted(); {
	case err == nil && sig != nil: // it came too late to end the acquire
		lock.DropMinHold()
		_ = lock.Release(ctx)
		return statusOnly(statusSignal + signalNumber(sig))
	case sig != nil:
		return statusOnly(statusSignal + signalNumber(sig))
	case errors.Is(err, locker.ErrNotAcquired) && f.heldStatus == 0:
		return nil // cron would mail the error
	case errors.Is(err, locker.ErrNotAcquired):
		return &statusError{f.heldStatus, err}
	case err != nil:
		return withStatus(err)
	}

	status, reported, err := f.supervise(lock.Done(), lock.Err, signals, start{path, argv, environment(name, lock.Fence())})
	if err != nil { // the command was not started: another holder may start it
		lock.DropMinHold()
	}
	err = errors.Join(err, f.release(lock, reported, &status))
	if err != nil {
		return &statusError{status, err}
	}
	return statusOnly(status)
}

// release releases the lock. If the lock was lost, and supervise has not reported that, release
// returns the loss and corrects the status.
func (f *runFlags) release(lock *locker.Lock, reported bool, status *int) error {
	err := lock.Release(context.Background())
	if reported {
		err = nil
	}
	if errors.Is(err, locker.ErrLost) && f.onLost == "kill" {
		*status = statusLost
	}
	return err
}

// lookPath finds the program of a command, before the lock is acquired.
func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", &statusError{statusNotFound, err}
	default:
		return "", &statusError{statusCannotRun, err}
	}
}

// environment returns the environment of a command. It leaves out the token of an outer lock: a
// check of it fails.
func environment(name string, fence int64) []string {
	var env []string
	for _, v := range os.Environ() {
		if !hasName(v, "HOLDFAST_NAME") && !hasName(v, "HOLDFAST_FENCE") {
			env = append(env, v)
		}
	}
	env = append(env, "HOLDFAST_NAME="+name)
	if fence != 0 {
		env = append(env, "HOLDFAST_FENCE="+strconv.FormatInt(fence, 10))
	}
	return env
}

func hasName(variable, name string) bool {
	return len(variable) > len(name) && variable[:len(name)] == name && variable[len(name)] == '='
}

// waitLine shows a person at a terminal why nothing happens: run is connecting, or waiting for the
// holder, and for how long.
type waitLine struct {
	*statusLine

	contended atomic.Bool
}

// waitShown is the delay before a wait is shown.
const waitShown = 500 * time.Millisecond

// showWait begins to show the wait for a lock.
func showWait(name string, servers []credentials) *waitLine {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.label())
	}
	w, began := &waitLine{}, time.Now()
	w.statusLine = startStatusLine(os.Stderr, func() string {
		took := time.Since(began)
		switch {
		case took < waitShown:
			return ""
		case w.contended.Load():
			return fmt.Sprintf("waiting for %s for %s", printable(name), took.Truncate(time.Second))
		default:
			return fmt.Sprintf("connecting to %s for %s", strings.Join(addrs, ", "), took.Truncate(time.Second))
		}
	})
	return w
}

// held reports the holder.
func (w *waitLine) held(err error) {
	w.contended.Store(true)
	if w.atTerminal() {
		_ = w.above(func() error { warnf("%s; waiting", trimPrefix(err)); return nil })
	}
}

func warnf(format string, args ...any) {
	_, _ = fmt.Fprintf(stderr, "holdfast: "+format+"\n", args...)
}

// start is a command to start.
type start struct {
	path string
	argv []string
	env  []string
}

func (s start) command() *exec.Cmd {
	return &exec.Cmd{Path: s.path, Args: s.argv, Env: s.env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
}

// supervise runs a command until it ends, and returns its exit status. If lost is closed before, it
// reports the loss, ends the command, unless onLost is "warn", and returns statusLost. If the command
// has ended by then, supervise may not notice the loss. After an error the command was not started.
func (f *commandFlags) supervise(
	lost <-chan struct{}, cause func() error, signals *signals, s start,
) (status int, reported bool, err error) {
	child, err := startChild(s.command(), f.onLost == "kill")
	if err != nil {
		return statusCannotRun, false, err
	}
	var kill <-chan time.Time
	killed := false // the command was told to end
	for {
		select {
		case status := <-child.ended:
			if !killed {
				return status, reported, nil
			}
			child.awaitGroup(kill)
			return statusLost, reported, nil
		case sig := <-signals.c:
			child.signal(sig)
		case <-kill:
			warnf("the command has not ended after %s: killing it", f.grace)
			child.kill()
			kill = nil
		case <-lost:
			lost, reported = nil, true
			if f.onLost == "warn" {
				warnf("%s; the command goes on", trimPrefix(cause()))
				continue
			}
			warnf("%s; ending the command", trimPrefix(cause()))
			killed = true
			if f.grace == 0 {
				child.kill()
				continue
			}
			child.terminate()
			kill = time.After(f.grace)
		}
	}
}

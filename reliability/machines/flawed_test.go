package machines

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// flaws are mistakes in a lock: a script in place of the one that contains a mark. The shrunk
// script has at most that many steps, of the twenty of a walk.
var flaws = map[string]struct {
	mark, script string
	most         int
	quorum       func([]locker.Locker) (locker.Locker, error) // instead of a script
}{
	quickFlaw: {
		"-- Releases a hold", `return redis.call('DEL', KEYS[1])`,
		6, nil, // a handle's token is not compared either
	},
	"a renewal that shortens": {
		"-- Extends the lease", `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], ARGV[2])`,
		6, nil,
	},
	"a fencing token that stays": {
		"-- Acquires, or finds", `
			if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) == false then
				return {0, redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}
			end
			if KEYS[2] then redis.call('SET', KEYS[2], '7', 'PX', ARGV[3]) return {1, '7'} end
			return {1, '0'}`,
		6, nil,
	},
	"a quorum of one of three":         {"", "", 6, oneOfThree},
	"a quorum that gives nothing back": {"", "", 12, givesNothingBack},
}

// flawVariable is the environment variable that enables TestFlawed.
const flawVariable = "HOLDFAST_MACHINES_FLAW"

// flawed replaces one script.
type flawed struct {
	driver.Driver
	mark   string
	script *driver.Script
}

func (f flawed) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if strings.Contains(s.Source(), f.mark) {
		s = f.script
	}
	return f.Driver.Eval(ctx, s, keys, args)
}

// TestFlawed fails, in a process of TestScriptsAreShort.
func TestFlawed(t *testing.T) {
	flaw, ok := flaws[os.Getenv(flawVariable)]
	if !ok {
		t.Skip("run by TestScriptsAreShort in a process of its own")
	}
	t.Parallel()
	if flaw.quorum != nil {
		walkQuorum(t, false, flaw.quorum)
		return
	}
	walk(t, kind{make: func(d driver.Driver) (locker.Locker, error) {
		return single.New(flawed{d, flaw.mark, driver.NewScript(flaw.script)}, single.Config{})
	}})
}

// quickFlaw is the flaw tried by default.
const quickFlaw = "a release that does not compare"

// A walk finds the mistake in a lock, and shows it as a script of the steps. make test-all takes the
// time to shrink it.
func TestScriptsAreShort(t *testing.T) {
	t.Parallel()
	for name, flaw := range flaws {
		if name != quickFlaw && !effort.Full() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out string
			var steps []string
			// The commands of a quorum's nodes have no order among each other, and rapid neither
			// shrinks nor prints the steps of an unrepeatable run: it ends after seconds, with no
			// steps.
			const tries = 10
			short := func() bool { return len(steps) > 0 && (len(steps) <= flaw.most || !effort.Full()) }
			for try := 0; try < tries && !short(); try++ {
				out, steps = shrunk(t, name)
			}
			if !short() {
				t.Errorf("%d steps, want 1 to %d:\n%s", len(steps), flaw.most, out)
			}
			t.Logf("the script:\n%s", strings.Join(steps, "\n"))
		})
	}
}

var stepLine = regexp.MustCompile(`(?m)^ +\d+\. (.*)$`)

// shrunk runs rapid until it finds a flaw, in a process of its own, and returns its output and the
// steps of the script.
func shrunk(t *testing.T, flaw string) (out string, steps []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestFlawed$", "-rapid.nofailfile",
		"-rapid.steps", "20", "-rapid.checks", "5000", "-rapid.shrinktime", effort.Of("10ms", "10ms", "1m"))
	cmd.Env = append(os.Environ(), flawVariable+"="+flaw)
	text, err := cmd.CombinedOutput()
	out = string(text)
	if err == nil {
		t.Fatalf("the walk found nothing wrong:\n%s", out)
	}
	_, script, _ := strings.Cut(out, "the script:")
	for _, found := range stepLine.FindAllStringSubmatch(script, -1) {
		steps = append(steps, found[1])
	}
	return out, slices.DeleteFunc(steps, func(step string) bool { return step == "the end" })
}

// oneOfThree is a quorum whose attempts each ask one node, in rotation.
func oneOfThree(over []locker.Locker) (locker.Locker, error) {
	var attempts atomic.Int64
	return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		return over[int(attempts.Add(1))%len(over)].Acquire(ctx, req)
	}), nil
}

// givesNothingBack is a quorum whose failed attempts leave their node locks.
func givesNothingBack(over []locker.Locker) (locker.Locker, error) {
	flawed := make([]locker.Locker, len(over))
	for i, node := range over {
		flawed[i] = locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := node.Acquire(ctx, req)
			if err == nil {
				lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return withoutUndo{inner} })
			}
			return lock, err
		})
	}
	return redlock.New(flawed, redlock.Config{Quorum: needed})
}

type withoutUndo struct{ lease.Lease }

func (l withoutUndo) Unwrap() lease.Lease { return l.Lease }

func (l withoutUndo) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpUndo {
		return lease.Result{}, nil
	}
	return l.Lease.Do(ctx, op)
}

package machines

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

var errCut = errors.New("connection cut")

// fault is a fault of commands.
type fault uint8

const (
	none fault = iota
	lose       // executed, its answer is lost
	drop       // not executed, an error at once
	hang       // not executed, no answer comes
	late       // executed after a while, its answer is lost at once
)

// lateBy is how much later a late command is executed.
const lateBy = 700 * time.Millisecond

// plan is the faults of a step's commands, one by one. The last one is repeated if it lasts.
type plan struct {
	faults []fault
	lasts  bool
}

// plans are in the order of preference of a shrunk script. A repeated one is drawn more often.
var plans = []plan{
	{}, {}, {}, {}, {}, {},
	{faults: []fault{lose}},
	{faults: []fault{drop}},
	{faults: []fault{hang}},
	{faults: []fault{late}},
	{faults: []fault{lose, lose}},
	{faults: []fault{late, drop}},
	{faults: []fault{lose}, lasts: true},
	{faults: []fault{drop}, lasts: true},
	{faults: []fault{hang}, lasts: true},
	{faults: []fault{late, drop}, lasts: true},
}

func (p plan) bad() bool { return len(p.faults) > 0 }

// String is for scripts.
func (p plan) String() string {
	if !p.bad() {
		return ""
	}
	words := [...]string{lose: "an answer is lost", drop: "a command is lost", hang: "a command hangs", late: "a command comes late"}
	text := " while"
	for i, f := range p.faults {
		if i > 0 {
			text += " and then"
		}
		text += " " + words[f]
	}
	if p.lasts {
		text += ", and so on"
	}
	return text
}

// faulty is a driver whose commands fail by plan.
//
// A plan is for the commands of a step, not for background work at the same instant: their order is
// left to chance, and a walk must repeat itself.
type faulty struct {
	driver.Driver
	late sync.WaitGroup

	mu    sync.Mutex
	plan  plan
	sent  int       // in the step
	until time.Time // when the last late command is executed
	down  bool      // nothing reaches the server
}

type stepKey struct{}

// inStep marks the commands of a step.
func inStep(ctx context.Context) context.Context { return context.WithValue(ctx, stepKey{}, true) }

// cut keeps all commands from the server from now on, or lets them through again.
func (f *faulty) cut(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

// then begins a plan.
func (f *faulty) then(p plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.sent = p, 0
}

// commands counts the commands since then began the plan.
func (f *faulty) commands() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// lastLate returns when the last late command is or was executed.
func (f *faulty) lastLate() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.until
}

func (f *faulty) next(ctx context.Context) (what fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return drop
	}
	if ctx.Value(stepKey{}) == nil {
		return none
	}
	f.sent++
	if len(f.plan.faults) == 0 {
		return none
	}
	what = f.plan.faults[0]
	if len(f.plan.faults) > 1 || !f.plan.lasts {
		f.plan.faults = f.plan.faults[1:]
	}
	if what == late {
		f.until = time.Now().Add(lateBy)
	}
	return what
}

func through[T any](ctx context.Context, f *faulty, call func(context.Context) (T, error)) (T, error) {
	var zero T
	switch f.next(ctx) {
	case lose:
		if _, err := call(ctx); err != nil && driver.NotExecuted(err) {
			return zero, err
		}
		return zero, errCut
	case drop:
		return zero, errCut
	case hang:
		<-ctx.Done()
		return zero, ctx.Err()
	case late:
		f.late.Go(func() {
			pass(lateBy)
			_, _ = call(context.Background())
		})
		return zero, errCut
	default:
		return call(ctx)
	}
}

// SetNX implements driver.Driver.
func (f *faulty) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	return through(ctx, f, func(ctx context.Context) (bool, error) { return f.Driver.SetNX(ctx, key, value, ttl) })
}

// Eval implements driver.Driver.
func (f *faulty) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	keys, args = append([]string(nil), keys...), append([]string(nil), args...)
	return through(ctx, f, func(ctx context.Context) (driver.Reply, error) { return f.Driver.Eval(ctx, s, keys, args) })
}

// pass lets fake time pass.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the time of a bubble

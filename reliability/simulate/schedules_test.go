package simulate_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/reliability/simulate"
)

// TestSchedules runs schedules: for a few seconds as a test, as many as the flags say in a process
// of `make simulate`.
func TestSchedules(t *testing.T) {
	t.Parallel()
	if *stride > 0 {
		many(t, *firstSeed, *stride, time.Duration(*seconds)*time.Second, *schedules)
		return
	}
	lasts := effort.Of(2*time.Second, 3*time.Second, 10*time.Second)
	lanes := runtime.GOMAXPROCS(0)
	for lane := range lanes {
		t.Run(strconv.Itoa(lane), func(t *testing.T) {
			t.Parallel()
			many(t, uint64(1+lane), uint64(lanes), lasts, 0)
		})
	}
}

// many runs every step-th schedule, beginning with a seed.
func many(t *testing.T, seed, step uint64, lasts time.Duration, n int) {
	t.Helper()
	start, violated := time.Now(), 0
	for done := 0; n == 0 || done < n; done++ {
		//realtime:ok how long to go on
		if lasts > 0 && time.Since(start) > lasts || *enough > 0 && violated >= *enough {
			return
		}
		for range *repeat {
			violated += one(t, simulate.NewPlan(seed))
		}
		seed += step
	}
}

// A schedule takes milliseconds. Fake time does not advance while a goroutine waits for a mutex, so
// it stops forever if the owner of the mutex waits for time to pass. This is noticed within the
// time stuck. rueidis does so for a second of real time when it closes a silent connection
// (v1.0.79: pool.Store): such a schedule cannot be simulated, and nothing is wrong otherwise. Any
// other stuck schedule is a failure.
const (
	look  = 5 * time.Second
	stuck = 3 * time.Minute
)

// markStuck begins the last line of a process after a schedule that cannot be simulated. Its seed
// follows.
const (
	markStuck   = "@stuck "
	statusStuck = 4
)

// watch watches the schedule of a seed until the returned function is called.
func watch(p *simulate.Plan) (stop func()) {
	start := time.Now()
	over := make(chan struct{})
	go func() {
		tick := time.NewTicker(look)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-over:
				return
			}
			stacks := make([]byte, 1<<22)
			stacks = stacks[:runtime.Stack(stacks, true)]
			if *stride > 0 && bytes.Contains(stacks, []byte("rueidis.(*pool).Store(")) && bytes.Contains(stacks, []byte("[sync.Mutex.Lock")) {
				fmt.Printf("%s%d\n", markStuck, p.Seed)
				os.Exit(statusStuck)
			}
			//realtime:ok how long to go on
			if time.Since(start) > stuck {
				panic(fmt.Sprintf("the schedule of seed %d is stuck; it is %v\n%s", p.Seed, p, stacks))
			}
		}
	}()
	return func() { close(over) }
}

// one runs a schedule, and returns 1 if a promise was broken, else 0.
func one(t *testing.T, p *simulate.Plan) (violations int) {
	t.Helper()
	if *flawed != "" {
		if !suits(p, *flawed) {
			return 0
		}
		for i := range p.Names { // other flawed locks have no tokens
			p.Names[i].Fenced = *flawed == sameFence
		}
		shareChains(p, *flawed)
		if p.FreeAtOnce(); *flawed == early {
			p.MinHolds()
		}
	}
	if *flawed != "" && *flawed != sharing {
		p.AcquireOnly() // they have no resumes
	}
	defer watch(p)()
	o := simulate.Run(t, p, flaws[*flawed])
	undecided := 0
	if o.Violated() {
		violations = 1
	}
	if o.Undecided() {
		undecided = 1
	}
	if violations+undecided > 0 {
		t.Fail()
		fmt.Printf("seed %d: %v\n%v\n", p.Seed, p, o.Report(filepath.Join(results(), strconv.FormatUint(p.Seed, 10))))
		fmt.Printf("%s\n", replay(p.Seed))
	}
	if *stride > 0 {
		fmt.Printf("%s%d %d %d %d %d %d\n", mark, o.Operations, o.HandOvers, o.Faults, o.Losses, violations, undecided)
	}
	return violations
}

// replay returns the command to repeat a schedule.
func replay(seed uint64) string {
	return fmt.Sprintf("run it again by: make simulate SEED=%d SCHEDULES=1", seed)
}

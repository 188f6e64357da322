package timers

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func init() { runtime.MemProfileRate = 1 } // every allocation is profiled

// patience is for operations of a second at most.
const patience = time.Minute

// census waits until no goroutine is in our code, and returns the origins of the timers still in
// use.
func census(t *testing.T) (left []string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		running := goroutines()
		if len(running) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("all is closed, and still there are the goroutines\n%s", strings.Join(running, "\n\n"))
		}
	}
	// Under load, some collections keep one of the many stopped timers. A timer set for longer than
	// these rounds take, a second or two, stays in use however often the collector runs.
	for range 20 {
		forgetStopped()
		for range 3 { // the profile is of two collections ago
			runtime.GC()
		}
		if left = inUse(); len(left) == 0 {
			return nil
		}
		<-time.After(10 * time.Millisecond)
	}
	return left
}

// inUse returns the origins of the timers in use at the end of the profile.
func inUse() (origins []string) {
	for _, r := range records() {
		if n, from := r.InUseObjects(), origin(r.Stack()); n > 0 && from != "" {
			origins = append(origins, fmt.Sprintf("%d by %s", n, from))
		}
	}
	slices.Sort(origins)
	return origins
}

// forgetStopped makes the runtime drop stopped timers. For each processor, it may keep them while
// fewer than a quarter of the timers are stopped. Here is one processor, and almost all are
// stopped.
func forgetStopped() {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 10_000 {
		//realtime:ok the timer is what is looked for
		time.AfterFunc(time.Hour, func() {}).Stop()
	}
	runtime.Gosched() // the scheduler looks
}

// records is the memory profile.
func records() []runtime.MemProfileRecord {
	all := make([]runtime.MemProfileRecord, 1_000)
	for {
		n, ok := runtime.MemProfile(all, false)
		if ok {
			return all[:n]
		}
		all = make([]runtime.MemProfileRecord, 2*n)
	}
}

// ours matches the functions with counted timers. Tests are not among them.
const ours = `github\.com/holdfast-go/holdfast/(locker|strategies|middleware|providers|internal/bounded)[/.]`

var (
	oursMade = regexp.MustCompile(`^` + ours)
	oursRuns = regexp.MustCompile(`(?m)^(created by )?` + ours)
)

// origin is the stack of the function that made the timer allocated at stack, without its
// beginning; "" if the allocation is no timer, or not ours.
func origin(stack []uintptr) string {
	var timer bool
	var lines []string
	for frames, more := runtime.CallersFrames(stack), true; more && len(lines) < 8; {
		var f runtime.Frame
		f, more = frames.Next()
		switch name := f.Function; {
		case len(lines) > 0, timer && oursMade.MatchString(name):
			lines = append(lines, fmt.Sprintf("%s\n\t%s:%d", name, f.File, f.Line))
		case name == "time.newTimer":
			timer = true
		case strings.HasPrefix(name, "runtime.(*timers)."):
			return "" // growth of the runtime's list of timers
		case strings.HasPrefix(name, "time."), strings.HasPrefix(name, "context."), strings.HasPrefix(name, "runtime."):
		default:
			return ""
		}
	}
	return strings.Join(lines, "\n")
}

// goroutines are those in our code, or started by it.
func goroutines() []string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := strings.Split(string(buf), "\n\n")
	return slices.DeleteFunc(all, func(g string) bool { return !oursRuns.MatchString(g) })
}

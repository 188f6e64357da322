package simulate_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sum counts the results of many schedules.
type sum struct {
	mu                                                sync.Mutex
	schedules, operations, faults, losses, violations int
	handOvers, undecided, stuck                       int
}

// line returns the last line of a run.
func (s *sum) line() string {
	return fmt.Sprintf("operations=%d faults=%d violations=%d seed=%d", s.operations, s.faults, s.violations, *firstSeed)
}

func (s *sum) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d schedules, %d operations, %d hand-overs, %d faults, %d losses, %d violations, %d stuck",
		s.schedules, s.operations, s.handOvers, s.faults, s.losses, s.violations, s.stuck)
}

// rate returns the number of operations per second.
func (s *sum) rate(took time.Duration) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.operations) / took.Seconds()
}

// mark begins the lines of a process's report.
const mark = "@schedule "

// add adds a line of a process, if it is a report, and returns the number of violations in it.
func (s *sum) add(line string) (violations int, report bool) {
	text, ours := strings.CutPrefix(line, mark)
	if !ours {
		return 0, false
	}
	var operations, handOvers, faults, losses, undecided int
	if _, err := fmt.Sscan(text, &operations, &handOvers, &faults, &losses, &violations, &undecided); err != nil {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedules++
	s.operations += operations
	s.handOvers += handOvers
	s.faults += faults
	s.losses += losses
	s.violations += violations
	s.undecided += undecided
	return violations, true
}

// simulateAll runs schedules in one process per core. Each runs one goroutine at a time, to make a
// seed as repeatable as possible.
func simulateAll() (*sum, error) {
	s := &sum{}
	n := runtime.NumCPU()
	if *schedules > 0 {
		n = min(n, *schedules)
	}
	errs := make([]error, n)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = s.process(i, n) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	progress := time.NewTicker(10 * time.Second)
	defer progress.Stop()
	for running := true; running; {
		select {
		case <-progress.C:
		case <-done:
			running = false
		}
		took := time.Since(start)
		fmt.Printf("%v: %v, %.0f operations a second\n", took.Round(time.Second), s, s.rate(took))
	}
	err := errors.Join(errs...)
	if s.undecided > 0 {
		err = errors.Join(err, fmt.Errorf("%d checks ran out of time", s.undecided))
	}
	if s.schedules == 0 && err == nil {
		err = errors.New("no schedule was run to its end: that proves nothing")
	}
	return s, err
}

// process runs the i-th of n processes, and a new one after a schedule that cannot be simulated.
func (s *sum) process(i, n int) error {
	seed, left := *firstSeed+uint64(i), 0
	if *schedules > 0 {
		left = (*schedules + n - 1 - i) / n
	}
	end := time.Now().Add(time.Duration(*seconds) * time.Second)
	for {
		done, stuckAt, err := s.run(seed, n, time.Until(end), left)
		if err != nil || stuckAt == 0 {
			return err
		}
		s.mu.Lock()
		s.stuck++
		s.mu.Unlock()
		if left -= done / *repeat + 1; *schedules > 0 && left <= 0 || *schedules == 0 && time.Until(end) < time.Second {
			return nil
		}
		seed = stuckAt + uint64(n)
	}
}

// run runs a process. done is the number of its schedules. stuckAt, if not 0, is the seed of the
// next one: it cannot be simulated.
func (s *sum) run(seed uint64, n int, lasts time.Duration, most int) (done int, stuckAt uint64, err error) {
	args := []string{
		"-test.run=^TestSchedules$", "-test.timeout=0", "-stride=" + strconv.Itoa(n), "-seconds=" + strconv.Itoa(int(lasts.Seconds())),
		"-seed=" + strconv.FormatUint(seed, 10), "-repeat=" + strconv.Itoa(*repeat), "-enough=" + strconv.Itoa(*enough), "-flawed=" + *flawed, "-dir=" + results(),
	}
	if *schedules > 0 {
		args = append(args, "-schedules="+strconv.Itoa(most))
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	violated := false
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		violations, ours := s.add(line)
		violated = violated || violations > 0
		if ours {
			done++
		} else if text, isStuck := strings.CutPrefix(line, markStuck); isStuck {
			stuckAt, _ = strconv.ParseUint(text, 10, 64)
		} else if line != "PASS" && line != "FAIL" {
			fmt.Println(line)
		}
	}
	err = cmd.Wait()
	if stuckAt != 0 || violated {
		return done, stuckAt, nil
	}
	if err != nil {
		err = fmt.Errorf("a process failed: %w", err)
	}
	return done, 0, err
}

// results returns the folder for the histories of violations.
func results() string {
	if *folder != "" {
		return *folder
	}
	return filepath.Join(os.TempDir(), "holdfast-simulate")
}

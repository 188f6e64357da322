//go:build unix

package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/peers/stats"
)

const (
	readyPatience  = time.Minute            // for all processes to be ready
	answerPatience = 10 * time.Second       // for a tally, after the grace and the end of stuck goroutines
	ahead          = 100 * time.Millisecond // how far in the future the processes are told to start
)

// process is a worker process as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan message // closed when the process writes no more
	done  sync.WaitGroup
}

// startProcess starts this program once more, as a worker with the Job.
func startProcess(ctx context.Context, job Job) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self), lines: make(chan message, 2)}
	p.cmd.Env = append(os.Environ(), WorkerVariable+"=1")
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.done.Go(func() {
		defer close(p.lines)
		r := bufio.NewReader(stdout)
		for range cap(p.lines) {
			var m message
			if readLine(r, &m) != nil {
				return
			}
			p.lines <- m
		}
	})
	if err := p.send(job); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *process) send(v any) error { return json.NewEncoder(p.stdin).Encode(v) }

// receive returns the next message, or an error at the deadline.
func (p *process) receive(deadline time.Time) (message, error) {
	select {
	case m, ok := <-p.lines:
		switch {
		case !ok:
			return m, errors.New("a worker process ended early")
		case m.Error != "":
			return m, fmt.Errorf("a worker process: %s", m.Error)
		}
		return m, nil
	case <-time.After(time.Until(deadline)):
		return message{}, fmt.Errorf("a worker process: %w", os.ErrDeadlineExceeded)
	}
}

// stop ends the process if it still runs.
func (p *process) stop() {
	_ = p.cmd.Process.Kill() // it may be gone
	p.done.Wait()
	_ = p.cmd.Wait() // killed
}

// RunProcesses does the Job in several processes at once, and adds up their tallies. The goroutines
// of a silent process count as stuck.
func RunProcesses(ctx context.Context, job Job, processes int, hooks Hooks) (_ *Tally, err error) {
	var all []*process
	defer func() {
		for _, p := range all {
			p.stop()
		}
	}()
	for i := range processes {
		job.Process = i
		p, err := startProcess(ctx, job)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	deadline := time.Now().Add(readyPatience)
	for _, p := range all {
		if _, err := p.receive(deadline); err != nil {
			return nil, err
		}
	}
	start := time.Now().Add(ahead)
	for _, p := range all {
		if err := p.send(start); err != nil {
			return nil, err
		}
	}
	until(start.Add(job.RunIn))
	call(hooks.Begin)
	until(start.Add(job.RunIn + job.For))
	call(hooks.End)
	return collect(job, all, time.Now().Add(job.Grace+answerPatience))
}

// collect adds up the tallies received before the deadline.
func collect(job Job, all []*process, deadline time.Time) (*Tally, error) {
	sum := &Tally{Times: &stats.Histogram{}}
	for _, p := range all {
		m, err := p.receive(deadline)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			sum.Cycles = append(sum.Cycles, make([]int64, job.Goroutines)...)
			sum.Stuck += job.Goroutines
		case err != nil:
			return nil, err
		default:
			sum.add(m.Tally)
		}
	}
	return sum, nil
}

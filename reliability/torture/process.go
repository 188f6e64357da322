package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
)

// process is the parent's side of a worker process.
type process struct {
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	stderr   bytes.Buffer
	finished chan struct{} // closed when it has ended and its output is read

	events []history.Event // valid once finished is closed
	err    error
	gone   time.Time

	mu     sync.Mutex
	killed bool
}

// startProcess starts this program as a worker, and returns when it waits for its task.
func startProcess() (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), finished: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerVariable+"=1")
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != workerReady {
		err = errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
		return nil, fmt.Errorf("a worker began with %q: %w\n%s", line, err, p.stderr.Bytes())
	}
	go p.listen(lines)
	return p, nil
}

// begin gives the process its task.
func (p *process) begin(t task) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if _, err := p.stdin.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("a worker's task: %w", err)
	}
	return nil
}

// listen collects the events of the process until it ends.
func (p *process) listen(lines *bufio.Reader) {
	defer close(p.finished)
	var bad error
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the kill cut the line off
			break
		}
		var e history.Event
		if err := json.Unmarshal(line, &e); err != nil {
			bad = fmt.Errorf("a worker said %q: %w", line, err)
			break
		}
		p.events = append(p.events, e)
	}
	err := p.cmd.Wait()
	p.gone = time.Now()
	p.stdin.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed && diedOf(err, syscall.SIGKILL) {
		err = nil
	} else if err != nil {
		err = fmt.Errorf("a worker: %w\n%s", err, p.stderr.Bytes())
	}
	p.err = errors.Join(bad, err)
}

// diedOf reports whether a process was ended by a signal, and not by itself before.
func diedOf(err error, sig syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == sig
}

// kill ends the process at once, and returns when it has ended.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	_ = p.cmd.Process.Kill()
	p.mu.Unlock()
	<-p.finished
}

// doom makes the process kill itself at the next wake-up of one of its waiters, within a time, and
// reports whether it did.
func (p *process) doom(ctx context.Context, within time.Duration) bool {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	p.trouble(dying, within)
	limit := time.NewTimer(2 * within)
	defer limit.Stop()
	select {
	case <-p.finished:
		return true
	case <-limit.C:
	case <-ctx.Done():
	}
	return false
}

// freeze stops the process until thaw.
func (p *process) freeze() error { return ignoreGone(p.cmd.Process.Signal(syscall.SIGSTOP)) }

func (p *process) thaw() error { return ignoreGone(p.cmd.Process.Signal(syscall.SIGCONT)) }

// trouble makes the process cause a trouble for a time.
func (p *process) trouble(which string, d time.Duration) {
	_, _ = fmt.Fprintln(p.stdin, which, d) // it may have ended
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// end waits for the process until limit, and settles its events. It thaws a process again if it
// halted itself after its thaw. At the limit it sends SIGQUIT: the process prints its goroutines.
func (p *process) end(rec *history.Recorder, limit time.Duration) ([]history.Event, error) {
	t, again := time.NewTimer(limit), time.NewTicker(time.Second)
	defer t.Stop()
	defer again.Stop()
	for {
		select {
		case <-p.finished:
			return history.Settle(p.events, rec.At(p.gone)), p.err
		case <-again.C:
			_ = p.thaw()
		case <-t.C:
			_ = p.cmd.Process.Signal(syscall.SIGQUIT)
			_ = p.thaw() // a halted process acts on no other signal
			<-p.finished
			return nil, errors.Join(fmt.Errorf("a worker did not end within %v after its time", limit), p.err)
		}
	}
}

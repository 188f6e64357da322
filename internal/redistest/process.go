package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// version returns the major version of the server program.
var version = sync.OnceValues(func() (int, error) {
	path, err := program()
	if err != nil {
		return 0, err
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("redistest: %s --version: %w", path, err)
	}
	m := regexp.MustCompile(`v=(\d+)\.`).FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("redistest: %s --version says %q: no version found", path, out)
	}
	return strconv.Atoi(string(m[1]))
})

// process is one run of a server program.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone
}

// run starts the server program, with its log in the file logName.
func run(args []string, logName string) (*process, error) {
	path, err := program()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logName, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	p := &process{cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // how it ended is in the log
	}()
	return p, nil
}

// patience bounds the waits for the end of a process and for a port.
const patience = 2 * time.Minute

// end sends sig to the process, also if it is frozen, and waits until it is gone.
func (p *process) end(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := p.thaw(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.exited:
		return nil
	case <-t.C:
		return fmt.Errorf("redistest: process %d is still there %v after %v", p.cmd.Process.Pid, patience, sig)
	}
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

const (
	pollLimit    = 5 * time.Minute  // of a whole poll
	attemptLimit = 20 * time.Second // of one check, since a server may be frozen
)

// poll calls check until it returns nil, or ctx is done, or pollLimit has passed.
func poll(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pollLimit)
	defer cancel()
	attempt := func() error {
		ctx, cancel := context.WithTimeout(ctx, attemptLimit)
		defer cancel()
		return check(ctx)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := attempt()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("redistest: waiting until %s: %w; last: %w", what, ctx.Err(), err)
		}
	}
}

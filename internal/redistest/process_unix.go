//go:build unix

package redistest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"syscall"
)

// freeze stops the process and returns when it runs no more.
func (p *process) freeze(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	stat := fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)
	return poll(ctx, "the process has stopped", func(context.Context) error {
		b, err := os.ReadFile(stat)
		if os.IsNotExist(err) {
			return nil // no /proc here: trust the signal
		}
		if err != nil {
			return err
		}
		// pid (name) state ...; the name may contain anything
		if _, state, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')'):], []byte(" ")); !bytes.HasPrefix(state, []byte("T")) {
			return fmt.Errorf("state is %.1s", state)
		}
		return nil
	})
}

// thaw lets the process go on.
func (p *process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// terminate asks for an orderly shutdown.
const terminate = syscall.SIGTERM

//go:build unix

package death_test

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// freeze stops the process, and returns when it has stopped.
func (h *holder) freeze() {
	h.t.Helper()
	h.signal(syscall.SIGSTOP)
	stat := fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid)
	for h.t.Context().Err() == nil {
		b, err := os.ReadFile(stat)
		if err != nil {
			return // no /proc here: trust the signal
		}
		if _, state, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')'):], []byte(" ")); bytes.HasPrefix(state, []byte("T")) {
			return
		}
	}
}

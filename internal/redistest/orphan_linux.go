package redistest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill cmd when the test process ends without
// cleaning up, as go test does to a test that takes too long.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

package redistest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill cmd when the test process ends without cleaning up, as after
// go test's timeout.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the command when holdfast dies, even by SIGKILL. The children
// of the command are not killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes holdfast the parent of orphans, and reports whether it is: the first process
// of a container may never reap them.
func adoptOrphans() bool { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil }

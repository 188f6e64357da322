package main

import "syscall"

// dieWithParent makes the kernel kill the command when holdfast dies, even by SIGKILL. The children
// of the command are not killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

//go:build unix && !linux

package main

import "syscall"

// dieWithParent does nothing: this system cannot kill a command when its parent dies.
func dieWithParent(*syscall.SysProcAttr) {}

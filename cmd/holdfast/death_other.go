//go:build unix && !linux

package main

import "syscall"

// dieWithParent does nothing: this system does not tell a command that its parent died.
func dieWithParent(*syscall.SysProcAttr) {}

//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// dieWithParent does nothing: this system cannot kill a command when its parent dies.
func dieWithParent(*syscall.SysProcAttr) {}

// adoptOrphans reports whether holdfast becomes the parent of orphans: here only as the first
// process of a container.
func adoptOrphans() bool { return os.Getpid() == 1 }

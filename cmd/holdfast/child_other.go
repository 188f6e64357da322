//go:build !unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

var passedOn = []os.Signal{os.Interrupt}

func signalNumber(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}

// child is a running command. This system has no process groups, and a process can only be killed:
// an interrupt of the console reaches the command by itself.
type child struct {
	ended chan int // its exit status

	process *os.Process
}

func startChild(cmd *exec.Cmd, _ bool) (*child, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{ended: make(chan int, 1), process: cmd.Process}
	go func() {
		_ = cmd.Wait()
		c.ended <- cmd.ProcessState.ExitCode()
	}()
	return c, nil
}

func interruptGroup() {}

func inForeground(*os.File) bool { return true }

func (c *child) signal(os.Signal) {}

func (c *child) terminate() { c.kill() }

func (c *child) kill() { _ = c.process.Kill() }

func (c *child) awaitGroup(<-chan time.Time) {}

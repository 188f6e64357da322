//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that the command gets if holdfast gets them.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

func signalNumber(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}

// child is a command that runs in a process group of its own. If holdfast has the terminal, the
// group gets it: the command reads from it, and Ctrl-C and Ctrl-Z go to the group.
type child struct {
	ended chan int // its exit status

	pid      int
	terminal bool

	mu     sync.Mutex
	reaped bool // its process id may be another's from now on
}

// startChild starts a command. With dieToo the kernel kills it when holdfast dies, where it can.
func startChild(cmd *exec.Cmd, dieToo bool) (*child, error) {
	c := &child{ended: make(chan int, 1), terminal: hasTerminal()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: c.terminal, Ctty: stdin}
	if dieToo {
		dieWithParent(cmd.SysProcAttr)
	}
	started := make(chan error)
	go func() {
		// For dieWithParent, the parent is the thread that starts the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			c.pid = cmd.Process.Pid
			if c.terminal {
				signal.Ignore(syscall.SIGTTOU) // so that holdfast can take the terminal back
			}
		}
		started <- err
		if err == nil {
			c.ended <- c.wait()
		}
	}()
	return c, <-started
}

const stdin = 0

// hasTerminal reports whether standard input is a terminal and holdfast is in its foreground.
func hasTerminal() bool {
	group, err := unix.IoctlGetInt(stdin, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// wait waits for the end of the command, and returns its exit status. If Ctrl-Z stops the command,
// holdfast stops too, until the shell lets it go on. Its lock is not renewed meanwhile.
func (c *child) wait() int {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err == nil && status.Stopped():
			if c.terminal {
				giveTerminal(unix.Getpgrp())
				_ = syscall.Kill(0, syscall.SIGSTOP)
				if hasTerminal() { // fg, and not bg
					giveTerminal(c.pid)
				}
				_ = syscall.Kill(-c.pid, syscall.SIGCONT)
			}
		default:
			c.mu.Lock()
			c.reaped = true
			c.mu.Unlock()
			if c.terminal {
				giveTerminal(unix.Getpgrp())
			}
			switch {
			case err != nil:
				return statusFailed
			case status.Signaled():
				return statusSignal + int(status.Signal())
			default:
				return status.ExitStatus()
			}
		}
	}
}

func giveTerminal(group int) { _ = unix.IoctlSetPointerInt(stdin, unix.TIOCSPGRP, group) }

// signal sends a signal to the command and its group.
func (c *child) signal(sig os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = syscall.Kill(-c.pid, syscall.Signal(signalNumber(sig)))
	}
}

// terminate asks the group to end, also if it is stopped.
func (c *child) terminate() {
	c.signal(syscall.SIGTERM)
	c.signal(syscall.SIGCONT)
}

func (c *child) kill() { c.signal(syscall.SIGKILL) }

// awaitGroup waits until the rest of the group has ended too, and kills it at timeout. The number
// of a group is not reused while it has members, even if its first process has ended.
func (c *child) awaitGroup(timeout <-chan time.Time) {
	for syscall.Kill(-c.pid, 0) == nil {
		select {
		case <-timeout:
			_ = syscall.Kill(-c.pid, syscall.SIGKILL)
			return
		case <-time.After(20 * time.Millisecond):
			if timeout == nil { // it was killed already
				return
			}
		}
	}
}

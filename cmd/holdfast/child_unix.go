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

	pid        int
	terminal   bool // holdfast had it
	foreground bool // the command was given it, and has not been stopped since

	mu     sync.Mutex
	reaped bool // its process id may be another's from now on
}

// startChild starts a command. With dieToo the kernel kills it when holdfast dies, where it can.
func startChild(cmd *exec.Cmd, dieToo bool) (*child, error) {
	c := &child{ended: make(chan int, 1), terminal: hasTerminal()}
	c.foreground = c.terminal
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
				c.stopToo()
			}
		default:
			c.mu.Lock()
			c.reaped = true
			c.mu.Unlock()
			if c.foreground {
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

// stopToo stops holdfast with its command, which has stopped, until the shell lets both go on. In the
// background it leaves the terminal to whoever has it. If the shell has meanwhile brought holdfast to
// the foreground, the command gets the terminal and goes on.
func (c *child) stopToo() {
	if !hasTerminal() {
		if c.foreground {
			giveTerminal(unix.Getpgrp())
		}
		continued := make(chan os.Signal, 1)
		signal.Notify(continued, syscall.SIGCONT)
		_ = syscall.Kill(0, syscall.SIGTSTP) // it may return before it has stopped this thread
		select {
		case <-continued:
		case <-time.After(time.Second): // no shell could continue the group: the kernel does not stop it
		}
		signal.Stop(continued)
	}
	if c.foreground = hasTerminal(); c.foreground { // fg, and not bg
		giveTerminal(c.pid)
	}
	_ = syscall.Kill(-c.pid, syscall.SIGCONT)
}

func giveTerminal(group int) { _ = unix.IoctlSetPointerInt(stdin, unix.TIOCSPGRP, group) }

// signal sends a signal to the command and its group. One that may end them does so also if they are
// stopped, as a command in the background that reads from the terminal.
func (c *child) signal(sig os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	_ = syscall.Kill(-c.pid, syscall.Signal(signalNumber(sig)))
	_ = syscall.Kill(-c.pid, syscall.SIGCONT)
}

// terminate asks the group to end.
func (c *child) terminate() { c.signal(syscall.SIGTERM) }

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

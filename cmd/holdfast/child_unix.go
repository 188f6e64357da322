//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passedOn are the signals passed on to the command.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

func signalNumber(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}

// child is a running command, in a process group of its own.
//
// If holdfast has the terminal and nothing else uses it, the group gets it at once: the command
// reads from it, and Ctrl-C and Ctrl-Z go to the group. In a pipeline, others of holdfast's group
// may use the terminal, as less does. The command then gets it only on demand: the kernel stops the
// command when it uses the terminal.
type child struct {
	ended chan int // its exit status

	adopts     bool // holdfast becomes the parent of the command's orphans
	pid        int
	tty        *os.File       // holdfast was in the foreground of this terminal; nil if there is none
	foreground bool           // the command was given it, and has not been stopped since
	stopSignal syscall.Signal // stops holdfast, unless no shell could continue it

	interrupted atomic.Bool // holdfast itself got SIGINT, and passed it on

	mu     sync.Mutex
	reaped bool // its process id may be another's from now on
}

// startChild starts a command. On Linux, with killWithParent, the kernel kills it when holdfast
// dies.
func startChild(cmd *exec.Cmd, killWithParent bool) (*child, error) {
	c := &child{
		ended: make(chan int, 1), adopts: adoptOrphans(), tty: foregroundTerminal(), stopSignal: syscall.SIGTSTP,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.tty != nil && isTerminal(0) && isTerminal(1) && isTerminal(2) {
		c.foreground = true
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(c.tty.Fd())
	}
	if killWithParent {
		dieWithParent(cmd.SysProcAttr)
	}
	started := make(chan error)
	go func() {
		// For dieWithParent, the parent is the starting thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if c.tty != nil {
			defer c.tty.Close() //nolint:errcheck // nothing was written
		}
		stops := c.catchStops()
		if c.tty != nil {
			// The command inherits an ignored signal, but not a caught one.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGTTOU)
		}
		err := cmd.Start()
		if c.tty != nil {
			signal.Ignore(syscall.SIGTTOU) // for holdfast to take the terminal back
		}
		if err == nil {
			c.pid = cmd.Process.Pid
		} else if c.foreground { // a child that could not become the command may have had it
			giveTerminal(c.tty, unix.Getpgrp())
		}
		started <- err
		if err == nil {
			defer c.passStops(stops)()
			c.ended <- c.wait()
		}
		signal.Stop(stops)
	}()
	return c, <-started
}

// foregroundTerminal returns the terminal if holdfast is in its foreground, else nil.
func foregroundTerminal() *os.File {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	if !hasTerminal(tty) {
		_ = tty.Close()
		return nil
	}
	return tty
}

// inForeground reports whether holdfast may draw on a terminal.
func inForeground(tty *os.File) bool { return hasTerminal(tty) }

// hasTerminal reports whether holdfast is in the foreground of tty.
func hasTerminal(tty *os.File) bool {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil
}

// catchStops catches Ctrl-Z for passStops if only holdfast's own group gets it. That begins before the
// command: a Ctrl-Z not caught would stop holdfast alone, and the command would go on without renewals.
// From now on holdfast stops by SIGTTIN: once caught, SIGTSTP has no default action any more.
func (c *child) catchStops() chan os.Signal {
	stops := make(chan os.Signal, 1)
	if c.tty != nil && !c.foreground {
		c.stopSignal = syscall.SIGTTIN
		signal.Notify(stops, syscall.SIGTSTP)
	}
	return stops
}

// passStops passes Ctrl-Z on to the command while holdfast is in the foreground. It returns a function
// to end this.
func (c *child) passStops(stops <-chan os.Signal) (end func()) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-stops:
				c.mu.Lock()
				if !c.reaped {
					_ = syscall.Kill(-c.pid, syscall.SIGTSTP) // wait sees it, and stops holdfast
				}
				c.mu.Unlock()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// wait waits for the end of the command, and returns its exit status. If Ctrl-Z stops the command,
// holdfast stops too, until the shell continues it. Its lock is not renewed meanwhile. wait also
// reaps adopted orphans.
func (c *child) wait() int {
	whom := c.pid
	if c.adopts {
		whom = -1
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(whom, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR), err == nil && pid != c.pid:
		case err == nil && status.Stopped():
			if c.tty != nil {
				c.stopWithCommand(status.StopSignal())
			}
		default:
			c.mu.Lock()
			c.reaped = true
			c.mu.Unlock()
			if c.foreground {
				giveTerminal(c.tty, unix.Getpgrp())
			}
			switch sig := status.Signal(); {
			case err != nil:
				return statusFailed
			case c.foreground && sig == syscall.SIGINT && !c.interrupted.Load(): // Ctrl-C
				return statusInterrupted
			case status.Signaled():
				return statusSignal + int(sig)
			default:
				return status.ExitStatus()
			}
		}
	}
}

// reapOrphans reaps the adopted processes that have ended: unreaped, they count as members of their
// group.
func (c *child) reapOrphans() {
	for c.adopts {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

// stopWithCommand stops holdfast after sig has stopped its command, until the shell continues both.
// If the shell brings holdfast to the foreground, the command gets the terminal back if it had it.
// A command stopped for using the terminal gets it too, at once if holdfast has it. In the
// background neither takes the terminal.
func (c *child) stopWithCommand(sig syscall.Signal) {
	wants := c.foreground || sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
	if !hasTerminal(c.tty) || !wants {
		if c.foreground {
			giveTerminal(c.tty, unix.Getpgrp())
		}
		continued := make(chan os.Signal, 1)
		signal.Notify(continued, syscall.SIGCONT)
		_ = syscall.Kill(0, c.stopSignal) // it may return before it has stopped this thread
		select {
		case <-continued:
		case <-time.After(time.Second): // no shell could continue the group: the kernel does not stop it
		}
		signal.Stop(continued)
	}
	if c.foreground = wants && hasTerminal(c.tty); c.foreground { // fg, and not bg
		giveTerminal(c.tty, c.pid)
	}
	_ = syscall.Kill(-c.pid, syscall.SIGCONT)
}

// interruptGroup ends holdfast and the rest of its process group by SIGINT, which Ctrl-C sent to the
// command alone: a shell ends its script if a program of it dies of SIGINT.
func interruptGroup() {
	if os.Getpid() == 1 { // the kernel spares it
		return
	}
	signal.Reset(syscall.SIGINT)
	_ = syscall.Kill(0, syscall.SIGINT)
	<-time.After(time.Second) // it may return before it has ended this process
}

func giveTerminal(tty *os.File, group int) {
	_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, group)
}

// signal sends a signal to the command's group, and continues it: a stopped one, such as a
// background reader of the terminal, acts on the signal too.
func (c *child) signal(sig os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	if sig == os.Interrupt {
		c.interrupted.Store(true)
	}
	c.send(syscall.Signal(signalNumber(sig)))
	_ = syscall.Kill(-c.pid, syscall.SIGCONT)
}

// send sends a signal to the command's group. The kernel refuses that if the command has changed its
// user.
func (c *child) send(sig syscall.Signal) {
	if err := syscall.Kill(-c.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		warnf("the command did not get %s: %v", unix.SignalName(sig), err)
	}
}

// terminate asks the group to end.
func (c *child) terminate() { c.signal(syscall.SIGTERM) }

func (c *child) kill() { c.signal(syscall.SIGKILL) }

// awaitGroup waits until the rest of the group has ended too, and kills it at timeout. The number
// of a group is not reused while it has members, even if its first process has ended.
func (c *child) awaitGroup(timeout <-chan time.Time) {
	for !errors.Is(syscall.Kill(-c.pid, 0), syscall.ESRCH) {
		c.reapOrphans()
		select {
		case <-timeout:
			c.send(syscall.SIGKILL)
			return
		case <-time.After(20 * time.Millisecond):
			if timeout == nil { // it was killed already
				return
			}
		}
	}
}

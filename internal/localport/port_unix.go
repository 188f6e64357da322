//go:build unix

package localport

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Hold keeps a port of 127.0.0.1 without a listener: dials to it are refused, and no other process
// gets it until Drop. Without Hold, another server soon gets the port of a dead one, and the dead
// one's clients connect to it.
func Hold(port int) (*Held, error) {
	fd, err := socket()
	if err != nil {
		return nil, fmt.Errorf("localport: hold port %d: %w", port, err)
	}
	if err := bind(fd, port); err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("localport: hold port %d: %w", port, err)
	}
	return &Held{drop: func() error { return drop(fd) }}, nil
}

// drop lets others bind even if a starting process still has a copy, until it executes its program.
func drop(fd int) error {
	err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	return errors.Join(err, syscall.Close(fd))
}

// socket returns a socket without copies in started processes.
func socket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	return fd, err
}

// bind binds although old connections of the port may linger, and then forbids it to others.
func bind(fd, port int) error {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	return syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0)
}

// shutdown makes all copies of a listener stop listening. On systems that shut down only
// connections, it changes nothing.
func shutdown(l net.Listener) {
	s, ok := l.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return // closed already
	}
	_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
}

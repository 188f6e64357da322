//go:build unix

package localport

import (
	"net"
	"syscall"
)

// shutdown makes all copies of a listener stop listening. Where the system does
// that only for connections, it changes nothing.
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

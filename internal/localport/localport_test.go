package localport_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/localport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestListen(t *testing.T) {
	t.Parallel()
	l, err := localport.Listen()
	check.Must(t, err)
	defer l.Close()
	port := localport.Of(l)
	check.Equal(t, "address", l.Addr().String(), net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if port < 10_000 || port >= 32_768 { // from 32,768 on kernels take ports for outgoing connections
		t.Errorf("port %d", port)
	}
	check.Equal(t, "somebody else listens there", check.ErrOf(net.Listen("tcp", l.Addr().String())) == nil, false)
}

func TestCloseWhileProcessesStart(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var starter sync.WaitGroup
	defer starter.Wait()
	defer stop()
	starter.Go(func() {
		for ctx.Err() == nil {
			_ = exec.CommandContext(ctx, os.Args[0], "-test.run=^$").Run()
		}
	})
	for range 300 {
		l, err := localport.Listen()
		check.Must(t, err)
		check.Must(t, localport.Close(l))
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			c.Close()
			t.Fatal("a closed listener accepts")
		}
	}
}

func TestDropWhileProcessesStart(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("ports are not held here")
	}
	folder := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var starters sync.WaitGroup
	defer starters.Wait()
	defer stop()
	for range 2 {
		starters.Go(func() {
			for ctx.Err() == nil {
				_, _ = os.StartProcess(folder, nil, &os.ProcAttr{}) // a folder: it fails, though not before the copy is made
			}
		})
	}
	l, err := localport.Listen()
	check.Must(t, err)
	for range 3000 {
		check.Must(t, localport.Close(l))
		held, err := localport.Hold(localport.Of(l))
		check.Must(t, err)
		check.Must(t, held.Drop())
		if l, err = net.Listen("tcp", l.Addr().String()); err != nil {
			t.Fatalf("a dropped port cannot be had: %v", err)
		}
	}
	l.Close()
}

func TestFree(t *testing.T) {
	t.Parallel()
	const n = 50
	ports, err := localport.Free(n)
	check.Must(t, err)
	seen := map[int]bool{}
	for _, p := range ports {
		seen[p] = true
	}
	check.Equal(t, fmt.Sprintf("different ports of %v", ports), len(seen), n)
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])))
	check.Must(t, err)
	l.Close()
}

func TestHold(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("ports are not held here")
	}
	l, err := localport.Listen()
	check.Must(t, err)
	addr, port := l.Addr().String(), localport.Of(l)
	linger(t, l)
	check.Must(t, localport.Close(l))
	held, err := localport.Hold(port)
	check.Must(t, err)
	check.Error(t, "dialing a held port", check.ErrOf(net.Dial("tcp", addr)), syscall.ECONNREFUSED)
	if l, err := net.Listen("tcp", addr); err == nil {
		t.Errorf("somebody else listens on a held port")
		l.Close()
	}
	if again, err := localport.Hold(port); err == nil {
		t.Errorf("a port is held twice")
		_ = again.Drop()
	}
	for range 2 {
		check.Must(t, held.Drop())
	}
	l, err = net.Listen("tcp", addr)
	check.Must(t, err)
	l.Close()
}

// linger leaves a connection of a port behind, first closed by the listener's side.
func linger(t *testing.T, l net.Listener) {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	check.Must(t, err)
	defer client.Close()
	server, err := l.Accept()
	check.Must(t, err)
	check.Must(t, server.Close())
	check.Error(t, "read", check.ErrOf(client.Read(make([]byte, 1))), io.EOF)
}

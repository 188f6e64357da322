package redistest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const orphanVariable = "REDISTEST_LEAVE_ORPHAN"

// beOrphan, in a process of TestServerDiesWithTheTests, leaves a server behind as a timed-out test
// does.
func beOrphan() bool {
	if os.Getenv(orphanVariable) == "" {
		return false
	}
	s, err := redistest.Launch(context.Background(), redistest.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(s.Addr())
	return true
}

func TestServerDiesWithTheTests(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills the children of a process that ends")
	}
	redistest.Need(t)
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), orphanVariable+"=1", "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	addr, err := cmd.Output()
	check.Must(t, err)
	if len(addr) == 0 {
		t.Fatal("the other process says no address")
	}
	check.Eventually(t, "the server dies with the process that started it", func() bool {
		c, err := net.Dial("tcp", string(addr))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

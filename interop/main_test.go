package interop

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/interop/gopeer"
)

// goPeer in the environment makes this executable a peer in Go.
const goPeer = "HOLDFAST_INTEROP_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(goPeer) == "" {
		clients.VerifyNoLeaks(m)
		return
	}
	if err := gopeer.Serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

package death_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

var server = redistest.Share(func(ctx context.Context) (*redistest.Server, error) {
	return redistest.Launch(ctx, redistest.Options{})
})

// TestMain runs this executable as a child if a test started it as one.
func TestMain(m *testing.M) {
	child := children[os.Getenv(childVariable)]
	if child == nil {
		goleak.VerifyTestMain(redistest.CloseAfter(m, server))
		return
	}
	if err := child(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

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

// TestMain makes this executable the holder where a test starts it as one.
func TestMain(m *testing.M) {
	if os.Getenv(holderVariable) == "" {
		goleak.VerifyTestMain(redistest.CloseAfter(m, server))
		return
	}
	if err := hold(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

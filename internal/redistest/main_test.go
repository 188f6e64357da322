package redistest_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

var shared = redistest.Share(func(ctx context.Context) (*redistest.Server, error) {
	return redistest.Launch(ctx, redistest.Options{})
})

func TestMain(m *testing.M) {
	if beOrphan() {
		return
	}
	goleak.VerifyTestMain(redistest.CloseAfter(m, shared))
}

package lease

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/lockerrors"
)

// ContextErr returns ctx.Err() together with ctx's cause, or nil if ctx has not ended. It is the error
// of an operation stopped by the end of ctx. The cause matches too (errors.Is), unless it is about
// another lock or command, such as a *locker.LostError or the error of another acquire. Then only
// its text is kept, so that it is not taken for the outcome of this operation.
func ContextErr(ctx context.Context) error { return lockerrors.ContextErr(ctx) }

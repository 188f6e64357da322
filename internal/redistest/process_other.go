//go:build !unix

package redistest

import (
	"context"
	"errors"
	"os"
)

func (p *process) freeze(context.Context) error { return errors.ErrUnsupported }

func (p *process) thaw() error { return nil }

// terminate is the only signal there is.
var terminate = os.Kill

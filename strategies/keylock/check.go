package keylock

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func checkContext(ctx context.Context) error {
	if ctx == nil {
		return driver.NilContext("Acquire ctx")
	}
	return nil
}

// check returns the key of a request, or an error if it cannot be met or ctx has ended.
func (l *Locker) check(ctx context.Context, req locker.Request) (key string, err error) {
	if err := req.Validate(); err != nil {
		return "", err
	}
	if err := l.checkSupport(req); err != nil {
		return "", err
	}
	if err := l.checkTTL(cmp.Or(req.TTL, req.Resume.Grant().TTL)); err != nil {
		return "", err
	}
	key = l.cfg.Prefix + req.Name
	if err := driver.CheckKey(l.keyName, key); err != nil {
		return "", err
	}
	return key, locker.ContextErr(ctx)
}

// checkSupport returns an error if the strategy cannot meet a request.
func (l *Locker) checkSupport(req locker.Request) error {
	switch spec := l.spec; {
	case req.Mode != locker.Exclusive && !spec.Shared:
		return fmt.Errorf("%s has no %v mode, rwhash does: %w", spec.Name, req.Mode, errors.ErrUnsupported)
	case req.Permits > 1 && spec.Permits == 0:
		return fmt.Errorf("%s has no permits, semaphore does: %w", spec.Name, errors.ErrUnsupported)
	case (req.Fenced || req.Resume.Fence() != 0) && spec.RaiseFence == nil:
		return fmt.Errorf("%s has no fencing tokens, single does: %w", spec.Name, errors.ErrUnsupported)
	case max(req.MinHold, req.Resume.Grant().MinHold) > 0 && !spec.MinHold:
		return fmt.Errorf("%s has no minimum hold, single does: %w", spec.Name, errors.ErrUnsupported)
	case req.Resume.IsZero() && spec.Permits > 0:
		return l.checkPermits(req)
	case req.Resume.IsZero():
		return nil
	case spec.Resume == nil:
		return fmt.Errorf("%s cannot resume a lock, single can: %w", spec.Name, errors.ErrUnsupported)
	case spec.ParseValue == nil:
		return checkResume(req, spec.Name)
	case spec.Permits > 0:
		return l.checkResumePermits(req)
	}
	return nil
}

// checkResume refuses a handle whose value is no token, and another owner than the handle's.
func checkResume(req locker.Request, strategy string) error {
	if len(req.Resume.Grant().Token) != lease.TokenLen {
		return driver.Invalid("Request.Resume", "a handle of another strategy", "a handle of a lock of "+strategy)
	}
	if owner := req.Resume.Owner(); req.Owner != "" && req.Owner != owner {
		return driver.Invalid("Request.Owner", fmt.Sprintf("%.64q", req.Owner),
			fmt.Sprintf("the handle's, %.64q, or none", owner))
	}
	return nil
}

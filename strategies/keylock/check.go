package keylock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// check returns the key of a request, or an error if it cannot be met or ctx has ended.
func (l *Locker) check(ctx context.Context, req locker.Request) (key string, err error) {
	if ctx == nil {
		return "", argument.NilContext("Acquire ctx")
	}
	if err := req.Validate(); err != nil {
		return "", err
	}
	if err := l.checkSupport(req); err != nil {
		return "", err
	}
	if err := l.checkTTL(cmp.Or(req.TTL, req.Resume.Info().TTL)); err != nil {
		return "", err
	}
	key = l.cfg.Prefix + req.Name
	if err := l.checkKey(key); err != nil {
		return "", err
	}
	return key, lease.ContextErr(ctx)
}

// checkKey returns an error if a lock cannot have the key.
func (l *Locker) checkKey(key string) error {
	if err := sibling.CheckKey(l.keyName, key); err != nil || l.spec.Siblings == nil {
		return err
	}
	if _, _, ok := l.spec.Siblings(key); !ok {
		return argument.Invalid(l.keyName, fmt.Sprintf("%.64q", key),
			"one for which the package documentation of "+l.spec.Name+" names a fence counter and a channel")
	}
	return nil
}

// checkSupport returns an error if the strategy cannot meet a request.
func (l *Locker) checkSupport(req locker.Request) error {
	spec, handed := l.spec, req.Resume.Info()
	lacks := func(what string) error { return fmt.Errorf("%s %s: %w", spec.Name, what, errors.ErrUnsupported) }
	switch {
	case req.Mode != locker.Exclusive && !spec.Shared:
		return lacks(fmt.Sprintf("has no %v mode, rwhash does", req.Mode))
	case req.Permits > 1 && spec.Permits == 0:
		return lacks("has no permits, semaphore does")
	case (req.Fenced || handed.Fence != 0) && spec.RaiseFence == nil:
		return lacks("has no fencing tokens, single does")
	case max(req.MinHold, handed.MinHold) > 0 && !spec.MinHold:
		return lacks("has no minimum hold, single does")
	case handed.Token == "" && spec.Permits > 0 && req.Permits > spec.Permits:
		return argument.Invalid("Request.Permits", strconv.Itoa(req.Permits),
			fmt.Sprintf("1 to %d, the permits of the semaphore", spec.Permits))
	case handed.Token == "":
		return nil
	case spec.Resume == nil:
		return lacks("cannot resume a lock, single can")
	case spec.ParseValue == nil && len(handed.Token) != lease.TokenLen,
		spec.Permits > 0 && spec.ParsePermits(handed.Token) == 0:
		return argument.Invalid("Request.Resume", "a handle of another strategy", "a handle of a lock of "+spec.Name)
	case spec.ParseValue == nil && req.Owner != "" && req.Owner != handed.Owner:
		return argument.Invalid("Request.Owner", "another than the handle's", "the handle's, or none")
	case spec.Permits > 0 && req.Permits != 0 && req.Permits != spec.ParsePermits(handed.Token):
		return argument.Invalid("Request.Permits", strconv.Itoa(req.Permits),
			fmt.Sprintf("the handle's, %d, or 0", spec.ParsePermits(handed.Token)))
	}
	return nil
}

package keylock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// errOvertaken: a conversion arrived behind a later one of the same Lock, and changed nothing any more.
var errOvertaken = errors.New("a later conversion of the same lock overtook it")

// convert changes the mode of the hold. It is repeated until it is answered, while ctx and the lease last. Each conversion
// has a number, by which the server refuses what arrives behind a later one.
func (h *hold) convert(ctx context.Context, mode locker.Mode) (lease.Term, error) {
	cmd := h.conversion(mode, h.fenced(), h.value, mode.String(), strconv.FormatInt(h.nextConversion(), 10))
	cmd.args = append(append(cmd.args, h.channel(), h.kept(h.ttl)), h.layout.Extra...)
	cmd.Limit = max(time.Until(h.until()), time.Nanosecond)
	if err := cmd.Resolve(ctx, cmd); err != nil {
		return lease.Term{}, gone(err)
	}
	status, err := cmd.reply.Int(0)
	if err != nil {
		return lease.Term{}, Malformed(err)
	}
	switch status {
	case replyYes, replyAlready:
		read := readFence
		if mode == locker.Exclusive {
			read = h.readToken
		}
		fence, err := read(cmd.reply)
		if err != nil {
			return lease.Term{}, err
		}
		if mode == locker.Exclusive {
			if err := h.acknowledged(ctx, cmd, status == replyAlready); err != nil {
				return lease.Term{}, unproven(err)
			}
		}
		return lease.Term{Deadline: h.until(), Fence: fence}, nil
	case replyNo:
		return lease.Term{}, locker.ErrLost
	case replyRefused:
		held, err := h.contention(cmd.reply)
		if err != nil {
			return lease.Term{}, err
		}
		return lease.Term{}, held
	case replyLate:
		return lease.Term{}, driver.Permanent(errOvertaken)
	case replyCounter:
		return lease.Term{}, h.counterInTheWay(cmd)
	case replyForeign:
		return lease.Term{}, h.foreignBeside(cmd)
	default:
		return lease.Term{}, Malformed(fmt.Errorf("status %d", status))
	}
}

func (h *hold) nextConversion() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conversions++
	return h.conversions
}

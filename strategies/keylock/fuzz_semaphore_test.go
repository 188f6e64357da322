package keylock_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// As FuzzReplies, for a semaphore, whose replies have its limit and its permits too.
func FuzzSemaphoreReplies(f *testing.F) {
	const (
		limit   = 3
		grant   = "*2\r\n:1\r\n$1\r\n5\r\n"
		plain   = "*2\r\n:1\r\n$1\r\n0\r\n"
		again   = "*2\r\n:2\r\n$1\r\n0\r\n"
		yes, no = ":1\r\n", ":0\r\n"
		cut     = ",1\r\n"
		value   = "0123456789abcdefABCDE_ 2 1:o"
		refusal = "*4\r\n:0\r\n$28\r\n" + value + "\r\n:7\r\n:5\r\n"
		kept    = "*4\r\n:0\r\n$29\r\n~" + value + "\r\n:7\r\n:5\r\n"
		first   = "*4\r\n:0\r\n$1\r\n~\r\n:-1\r\n:2000\r\n"
		other   = "*2\r\n:5\r\n:4\r\n"
		state   = "*7\r\n:1\r\n$28\r\n" + value + "\r\n:9\r\n:1\r\n:0\r\n:3\r\n:2\r\n"
		left    = "*7\r\n:1\r\n$29\r\n~" + value + "\r\n:9\r\n:0\r\n:0\r\n:3\r\n:4\r\n"
	)
	for _, reply := range []string{refusal, kept, first, other, plain + no, plain + ":2\r\n", plain + ":5\r\n", again + yes, "*1\r\n:5\r\n", "*2\r\n:5\r\n$1\r\n4\r\n"} {
		f.Add(uint8(0), "", []byte(reply))
	}
	f.Add(uint8(8), "", []byte("*1\r\n:0\r\n"+plain+yes))
	f.Add(uint8(8), "i", []byte(state+plain+left+yes))
	f.Add(uint8(1), "rfiud", []byte(grant+yes+grant+state+yes))
	f.Add(uint8(4), "i", []byte(plain+"*5\r\n:1\r\n$1\r\nx\r\n:-1\r\n:1\r\n:0\r\n"+yes))
	f.Add(uint8(16), "r", []byte(plain+yes+yes))
	f.Add(uint8(17), "rr", []byte(cut+grant+cut+yes+cut+cut+no))
	f.Add(uint8(5), "rr", []byte(cut+cut+grant+cut+yes+":2\r\n"+cut+no))
	f.Add(uint8(1), "fri", []byte(grant+"-ERR no\r\n-WRONGTYPE no\r\n*2\r\n:-1\r\n$1\r\nx\r\n-OOM no\r\n-MOVED 1 x\r\n-LOADING\r\n"))
	f.Fuzz(func(t *testing.T, flags uint8, ops string, stream []byte) {
		synctest.Test(t, func(t *testing.T) {
			d := &hostile{replies: resp.NewReader(bytes.NewReader(stream))}
			l := locker.Must(semaphore.New(d, semaphore.Config{Permits: limit}))
			v := &victim{T: t, hostile: d, l: l, permits: limit}
			v.run(flags, ops)
		})
	})
}

// seesPermits reports whether the last reply says what Inspect returned.
func (v *victim) seesPermits(state locker.State) bool {
	if !state.Held {
		return v.is(0) && state.Holds == 0 && int64(state.Permits) == v.permits && state.Free == state.Permits
	}
	holds, err1 := v.last.Int(3)
	limit, err2 := v.last.Int(5)
	used, err3 := v.last.Int(6)
	return errors.Join(err1, err2, err3) == nil && v.is(1) && v.text(1) && v.number(2) && v.number(4) && int64(state.Holds) == holds &&
		int64(state.Permits) == limit && int64(state.Free) == max(limit-used, 0)
}

package keylock_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// need_memory knows the error of a full server in the form of each version.
func TestNeedMemory(t *testing.T) {
	check.EachInFakeTime(t, map[string]string{
		"Redis 6.2": "@user_script: 61: -OOM command not allowed when used memory > 'maxmemory'.",
		"Redis 7.0": "OOM command not allowed when used memory > 'maxmemory'.",
	}, func(t *testing.T, refusal string) {
		_, drv := locktest.Memory(t)
		script := driver.NewScript(`
local refusal = ARGV[1]
local redis = {pcall = function() return {err = refusal} end, call = function() error('raised') end}
` + keylock.Lua("need_memory(KEYS[1])\nreturn 1"))
		_, err := drv.Eval(t.Context(), script, []string{name}, []string{refusal})
		check.Contains(t, "error", fmt.Sprint(err), "raised")
	})
}

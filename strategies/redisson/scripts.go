package redisson

import (
	_ "embed"
	"fmt"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

//go:embed lua/lock.lua
var lockLua string

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/resume.lua
var resumeLua string

//go:embed lua/undo_resume.lua
var undoResumeLua string

//go:embed lua/raise_fence.lua
var raiseFenceLua string

//go:embed lua/inspect.lua
var inspectLua string

// common goes before every script. Its most is the length of the longest field of ours, in bytes: a
// hold's, kept by a release.
var common = fmt.Sprintf("local most = %d\n", len("~")+maxValue) + lockLua

var spec = keylock.Spec{
	Name:       "redisson",
	NewValue:   newValue,
	ParseValue: parseValue,
	MinHold:    true,
	Note:       true,
	Siblings:   siblings,
	Acquire:    driver.NewScript(keylock.Lua(common + acquireLua)),
	Renew:      driver.NewScript(keylock.Lua(common + renewLua)),
	Release:    driver.NewScript(keylock.Lua(common + releaseLua)),
	Resume:     driver.NewScript(keylock.Lua(common + resumeLua)),
	UndoResume: driver.NewScript(keylock.Lua(common + undoResumeLua)),
	RaiseFence: driver.NewScript(keylock.Lua(common + raiseFenceLua)),
	Inspect:    driver.NewScript(keylock.Lua(common + inspectLua)),
}

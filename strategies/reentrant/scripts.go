package reentrant

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/fencing"
	"github.com/holdfast-go/holdfast/strategies/internal/lease"
)

//go:embed lua/holds.lua
var holdsLua string

//go:embed lua/fence.lua
var fenceLua string

//go:embed lua/acquire_free.lua
var acquireFreeLua string

//go:embed lua/release_only.lua
var releaseOnlyLua string

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/resume.lua
var resumeLua string

//go:embed lua/undo_resume.lua
var undoResumeLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/raise_fence.lua
var raiseFenceLua string

//go:embed lua/inspect.lua
var inspectLua string

var inspectScript = driver.NewScript(holdsLua + inspectLua)

var layout = lease.Layout{
	Strategy:    "reentrant",
	SendHolder:  true,
	Acquire:     driver.NewScript(acquireFreeLua + fencing.Lua + holdsLua + fenceLua + acquireLua),
	Resume:      driver.NewScript(fencing.Lua + holdsLua + fenceLua + resumeLua),
	UndoResume:  driver.NewScript(holdsLua + undoResumeLua),
	Renew:       driver.NewScript(holdsLua + renewLua),
	Release:     driver.NewScript(releaseOnlyLua + holdsLua + releaseLua),
	RaiseFence:  driver.NewScript(fencing.Lua + holdsLua + fenceLua + raiseFenceLua),
	CheckResume: checkResume,
	Value:       func(string, string) string { return locker.NewToken() },
	Holder:      readHolder,
}

package single

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/fencing"
	"github.com/holdfast-go/holdfast/strategies/internal/lease"
)

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

var inspectScript = driver.NewScript(inspectLua)

var layout = lease.Layout{
	Strategy:   "single",
	SetNX:      true,
	Acquire:    driver.NewScript(fencing.Lua + acquireLua),
	Resume:     driver.NewScript(fencing.Lua + resumeLua),
	UndoResume: driver.NewScript(undoResumeLua),
	Renew:      driver.NewScript(renewLua),
	Release:    driver.NewScript(releaseLua),
	RaiseFence: driver.NewScript(fencing.Lua + raiseFenceLua),
	Value:      newValue,
	Parse:      parseValue,
	Holder:     readHolder,
}

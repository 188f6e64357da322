// Package holds is the Lua that strategies share which keep their holds as fields of one hash: a field per hold, named by
// its token, with an expiry of its own by the server's clock. Nothing is counted.
//
// A strategy puts [Lua] before its scripts and, behind it, its own open(key), which reads the lock.
package holds

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/strategies/internal/fencing"
)

//go:embed holds.lua
var holdsLua string

// Lua finds, writes and removes holds.
var Lua = fencing.ReadLua + holdsLua

//go:embed count.lua
var countLua string

// FenceLua is for scripts that mint: next_fence and count. It comes behind Lua.
var FenceLua = fencing.Lua + countLua

// RenewLua is the script that extends a hold, behind Lua and open.
//
//go:embed renew.lua
var RenewLua string

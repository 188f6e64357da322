package locker

// NewHandle is for tests of handles that no Lock has made.
var NewHandle = newHandle

// MaxNames is the limit of AcquireAll.
const MaxNames = maxNames

package logging

import (
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// defaultSlowWait is Config.SlowWait's default.
const defaultSlowWait = time.Second

// Config configures the logging. The zero Config works.
type Config struct {
	// Logger gets the records. Default: slog.Default(), as it is at each record.
	Logger *slog.Logger
	// SlowWait is the minimum length of a slow wait, from the call of Acquire. Default: 1 s.
	SlowWait time.Duration
	// ContendedLevel is the level of "lock contended". Default: slog.LevelDebug.
	ContendedLevel slog.Leveler
	// SlowLevel is the level of "lock wait is slow" and "slow lock wait ended". Default:
	// slog.LevelWarn.
	SlowLevel slog.Leveler
	// LostLevel is the level of "lock lost" and "lock release failed". Default: slog.LevelError.
	LostLevel slog.Leveler
	// FailingLevel is the level of "lock renewals fail" and "redlock node fails". Default:
	// slog.LevelWarn.
	FailingLevel slog.Leveler
	// RecoveredLevel is the level of "lock renewals recovered" and "redlock node recovered".
	// Default: slog.LevelInfo.
	RecoveredLevel slog.Leveler
	// ShowOwner logs the holder's owner. On a reentrant lock, whoever knows the owner can enter.
	// Default: false. The token of a hold is never logged.
	ShowOwner bool
}

// New returns a logging Middleware. It may wrap several Lockers. Errors: ErrInvalid.
func New(cfg Config) (locker.Middleware, error) {
	if cfg.SlowWait < 0 {
		return nil, &locker.InvalidError{
			What: "logging.Config.SlowWait", Got: cfg.SlowWait.String(), Allowed: "a positive duration, or 0 for 1s",
		}
	}
	if cfg.SlowWait == 0 {
		cfg.SlowWait = defaultSlowWait
	}
	for _, l := range []struct {
		level *slog.Leveler
		usual slog.Level
	}{
		{&cfg.ContendedLevel, slog.LevelDebug},
		{&cfg.SlowLevel, slog.LevelWarn},
		{&cfg.LostLevel, slog.LevelError},
		{&cfg.FailingLevel, slog.LevelWarn},
		{&cfg.RecoveredLevel, slog.LevelInfo},
	} {
		if *l.level == nil {
			*l.level = l.usual
		}
	}
	return telemetry.Middleware("logging", newLog(cfg).acquire), nil
}

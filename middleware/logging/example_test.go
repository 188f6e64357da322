package logging_test

import (
	"context"
	"log/slog"
	"os"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/logging"
)

// Contention is logged at debug level by default. The holder's note is shown, its owner is not.
func ExampleNew() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "lease_left" {
			return slog.Attr{} // they differ from run to run
		}
		return a
	}}))
	server := lockertest.New()
	l := locker.Chain(server, locker.Must(logging.New(logging.Config{Logger: logger, ContendedLevel: slog.LevelInfo})))

	server.Hold(locker.Request{Name: "report", Owner: "4711", Note: "nightly run"})
	_, _ = l.Acquire(context.Background(), locker.Request{Name: "report"})
	server.Expire("report")

	lock, _ := l.Acquire(context.Background(), locker.Request{Name: "report"})
	_ = lock.Release(context.Background()) // nothing to report
	// Output: level=INFO msg="lock contended" lock=report mode=exclusive holder_note="nightly run"
}

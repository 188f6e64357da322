package locker

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// SetNote is Lock.SetNote.
func (l *lockState) SetNote(ctx context.Context, note string) error {
	var invalid error
	if len(note) > MaxNameLen {
		invalid = driver.Invalid("Lock.SetNote note", fmt.Sprintf("%d bytes", len(note)), "at most 1024 bytes")
	}
	if ctx != nil && invalid == nil && l.valid() {
		done, err := l.beginConversion(ctx)
		if err != nil {
			return opError("note", l.Name(), err)
		}
		defer done()
	}
	return l.do(ctx, "note", lease.Op{Kind: lease.OpNote, Note: note}, invalid, false)
}

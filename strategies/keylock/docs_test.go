package keylock_test

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
)

// TestPageShowsTheExample checks that docs/writing-a-strategy.md shows the Example's scripts.
func TestPageShowsTheExample(t *testing.T) {
	t.Parallel()
	page := locker.Must(os.ReadFile("../../docs/writing-a-strategy.md"))
	source := locker.Must(os.ReadFile("example_test.go"))
	example := strings.Join(strings.Fields(string(source)), " ")
	blocks := strings.Split(string(page), "```lua\n")[1:]
	if len(blocks) == 0 {
		t.Error("the page shows no script")
	}
	for _, block := range blocks {
		script, _, _ := strings.Cut(block, "```")
		if !strings.Contains(example, strings.Join(strings.Fields(script), " ")) {
			t.Errorf("the Example has no such script:\n%s", script)
		}
	}
}

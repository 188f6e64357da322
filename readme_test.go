package holdfast_test

import (
	"os"
	"strings"
	"testing"
)

// Every line of the code in the README stands in an example, which is compiled and run.
func TestReadmeCode(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Error("README.md has no code")
	}
	for _, rest := range blocks {
		code, _, _ := strings.Cut(rest, "```")
		for line := range strings.Lines(code) {
			if !strings.Contains(string(example), strings.TrimSpace(line)) {
				t.Errorf("not in example_test.go: %s", line)
			}
		}
	}
}

package tracing_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

// Every attribute, event, instrument and log record in the code is described in
// docs/observability.md.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "observability.md"))
	check.Must(t, err)
	for pattern, named := range map[string]*regexp.Regexp{
		"../tracing/*.go": regexp.MustCompile(`(?:attribute\.Key\(|AddEvent\(|Start\(.*)"([a-z][a-z ._]+)"`),
		"../metrics/*.go": regexp.MustCompile(`(?:attribute\.Key\(|m\.\w+\()"(holdfast[a-z._]+)"`),
		"../logging/*.go": regexp.MustCompile(`(?:slog\.\w+\(|printable\(|log\(.*, |logEnd\(ctx, )"([a-z_ ]+)"`),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 3 {
			t.Fatalf("files %q, %v", files, err)
		}
		found := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source := locker.Must(os.ReadFile(file))
			for _, m := range named.FindAllStringSubmatch(string(source), -1) {
				found++
				check.Contains(t, "docs/observability.md", string(page), "`"+m[1]+"`")
			}
		}
		check.AtLeast(t, "names in "+pattern, found, 10)
	}
}

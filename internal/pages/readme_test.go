package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/gocommand"
)

// The paths of these tests begin at the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	check.Must(t, err)
	return string(text)
}

// codeOf returns the blocks of a language in a page.
func codeOf(t *testing.T, file, language string) (blocks []string) {
	t.Helper()
	for _, rest := range strings.Split(read(t, file), "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(rest, "```")
		blocks = append(blocks, code)
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no code in %s", file, language)
	}
	return blocks
}

// The program in README.md compiles, and its body runs as an example.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	program := codeOf(t, "README.md", "go")[0]
	file := filepath.Join(t.TempDir(), "main.go")
	check.Must(t, os.WriteFile(file, []byte(program), 0o600))
	gocommand.Run(t, ".", "vet", file)
	_, body, ok := strings.Cut(program, "func main() {\n")
	body, _, done := strings.Cut(body, "\tif err != nil {")
	if !ok || !done {
		t.Fatalf("it is not of the expected form:\n%s", program)
	}
	inExample(t, strings.ReplaceAll(body, `"localhost:6379"`, "addr"))
}

// The code in docs/choosing.md runs as an example.
func TestChoosingCode(t *testing.T) {
	t.Parallel()
	for _, code := range codeOf(t, filepath.Join("docs", "choosing.md"), "go") {
		inExample(t, code)
	}
}

// inExample checks that every line of code is in example_test.go: it is compiled and run.
func inExample(t *testing.T, code string) {
	t.Helper()
	example := read(t, "example_test.go")
	for line := range strings.Lines(code) {
		if !strings.Contains(example, strings.TrimSpace(line)) {
			t.Errorf("not in example_test.go: %s", line)
		}
	}
}

// The packages run by the commands in README.md exist in the modules of these commands.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	commands := regexp.MustCompile(`go run (?:-C (\S+) )?(\.\S*)`).FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(commands) < 2 {
		t.Errorf("README.md runs %q", commands)
	}
	for _, c := range commands {
		folder, pkg := c[1], strings.TrimSuffix(c[2], "`")
		if _, err := os.Stat(filepath.Join(folder, pkg, "main.go")); err != nil {
			t.Errorf("%s: %v", c[0], err)
		}
		for dir := filepath.Join(folder, pkg); dir != "."; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && dir != filepath.Clean(folder) {
				t.Errorf("%s: %s is a module of its own, which needs -C", c[0], dir)
			}
		}
	}
}

// Every link to a file of the repository leads to one, and every link to a section to a heading.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/*.md")
	check.Must(t, err)
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, page := range append(pages, "README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", filepath.Join("reliability", "RESULTS.md")) {
		text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read(t, page), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if m[2] != "" && !hasHeading(read(t, target), m[2]) {
				t.Errorf("%s: %s has no heading for #%s", page, target, m[2])
			}
		}
	}
}

// hasHeading reports whether the page has a heading with this anchor.
func hasHeading(page, anchor string) bool {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		id := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		if strings.ReplaceAll(id, " ", "-") == anchor {
			return true
		}
	}
	return false
}

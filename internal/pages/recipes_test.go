package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

var recipeLink = regexp.MustCompile(`\[[^\]]*\]\(([^)]*)\)`)

// linksOf returns the targets of the links of text.
func linksOf(text string) (targets []string) {
	for _, m := range recipeLink.FindAllStringSubmatch(text, -1) {
		targets = append(targets, m[1])
	}
	return targets
}

// docs/recipes.md begins with a table of its recipes. Each recipe names its code first, the same as
// in the table. A test runs this code, and each example and test named by the recipe.
func TestRecipes(t *testing.T) {
	t.Parallel()
	page := read(t, filepath.Join("docs", "recipes.md"))
	intro, _, _ := strings.Cut(page, "\n## ")
	var index []string
	code := map[string][]string{} // of a recipe, by its anchor
	for _, row := range regexp.MustCompile(`(?m)^\| .* \| (\[.*) \| (.*) \|$`).FindAllStringSubmatch(intro, -1) {
		anchor := strings.TrimPrefix(linksOf(row[1])[0], "#")
		index = append(index, anchor)
		code[anchor] = linksOf(row[2])
	}

	var recipes []string
	linked := map[string]bool{}
	for _, recipe := range strings.Split(page, "\n## ")[1:] {
		title, text, _ := strings.Cut(recipe, "\n\n")
		i := slices.IndexFunc(index, func(anchor string) bool { return hasHeading("# "+title, anchor) })
		if i < 0 {
			t.Errorf("%s: not in the table", title)
			continue
		}
		recipes = append(recipes, index[i])
		first, _, _ := strings.Cut(text, "\n\n")
		if files := linksOf(first); !strings.HasPrefix(first, "Code: ") || !slices.Equal(files, code[index[i]]) {
			t.Errorf("%s begins with %q, want Code: and what the table has: %q", title, first, code[index[i]])
		}
		var tests strings.Builder
		for _, target := range linksOf(text) {
			if file := filepath.Join("docs", target); !strings.Contains(target, ":") && filepath.Ext(file) != ".md" {
				linked[filepath.ToSlash(file)] = true
				tests.WriteString(testsBeside(t, file))
			}
		}
		if tests.Len() == 0 {
			t.Errorf("%s: no test runs its code", title)
		}
		for _, m := range regexp.MustCompile("`((?:Example|Test)\\w*)`").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(tests.String(), "\nfunc "+m[1]+"(") {
				t.Errorf("%s: %s is in none of the files that it links to", title, m[1])
			}
		}
	}
	if !slices.Equal(recipes, index) {
		t.Errorf("the recipes are\n%q, the table has\n%q", recipes, index)
	}

	files, err := filepath.Glob("examples/recipes/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "main_test.go" && !linked[filepath.ToSlash(file)] {
			t.Errorf("no recipe links to %s", file)
		}
	}
}

// testsBeside returns the text of a test file, or of the test files in the folder of another file.
func testsBeside(t *testing.T, file string) string {
	t.Helper()
	if strings.HasSuffix(file, "_test.go") {
		return read(t, file)
	}
	if info, err := os.Stat(file); err == nil && !info.IsDir() {
		file = filepath.Dir(file)
	}
	files, err := filepath.Glob(filepath.Join(file, "*_test.go"))
	check.Must(t, err)
	var all strings.Builder
	for _, test := range files {
		all.WriteString(read(t, test))
	}
	return all.String()
}

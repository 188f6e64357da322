package spec

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

var update = flag.Bool("update", false, "write the tables in README.md; those of TLC need HOLDFAST_TLC, as make spec sets it")

// modules are the specs, in the order of README.md.
var modules = []string{"Lease", "Waiting"}

// configuration is one .cfg file: its topic, the verdict expected of TLC, and the checks.
type configuration struct {
	name, module, shows, expect string
	invariants, properties      []string
}

// accepted is the verdict on a configuration without a violation.
const accepted = "ok"

var expectation = regexp.MustCompile(`^\\\* (.+)\n\\\* expect: (\w+)\n`)

// configurations reads all .cfg files.
func configurations(t *testing.T) (all []configuration) {
	t.Helper()
	for _, file := range locker.Must(filepath.Glob("*.cfg")) {
		text := read(file)
		found := expectation.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("%s does not begin with what it shows and what it expects", file)
		}
		c := configuration{name: strings.TrimSuffix(file, ".cfg"), shows: found[1], expect: found[2]}
		c.module, _, _ = strings.Cut(c.name, "_")
		for line := range strings.Lines(text) {
			switch names := strings.Fields(line); {
			case len(names) == 0:
			case names[0] == "INVARIANTS":
				c.invariants = names[1:]
			case names[0] == "PROPERTIES":
				c.properties = names[1:]
			}
		}
		all = append(all, c)
	}
	return all
}

func read(file string) string { return string(locker.Must(os.ReadFile(file))) }

// TestConfigurations runs TLC on every configuration, as many at once as there are processors. TLC
// must accept the configuration, or find its expected violation.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	jar := os.Getenv("HOLDFAST_TLC")
	if jar == "" {
		t.Skip("make spec runs it")
	}
	began, all := time.Now(), configurations(t)
	runs := make([]run, len(all))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				r := runTLC(t, jar, all[i])
				t.Log(r)
				if r.verdict != r.expect {
					t.Errorf("%s: TLC found %q, want %q\n%s", r.name, r.verdict, r.expect, r.output)
				}
				runs[i] = r
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	workers.Wait()
	t.Logf("%d configurations in %.0f s", len(all), time.Since(began).Seconds())
	if *update && !t.Failed() {
		for _, module := range modules {
			section := headerOfRuns
			for _, r := range runs {
				if r.module == module {
					section += r.row()
				}
			}
			replaceSection(t, "Configurations of "+module, section)
		}
	}
}

// run is a run of TLC on a configuration.
type run struct {
	configuration

	output, verdict, states string
	cpu                     time.Duration
}

const headerOfRuns = "| configuration | shows | TLC finds | states | CPU s |\n|---|---|---|---:|---:|\n"

func (r run) row() string {
	return fmt.Sprintf("%s %s | %.0f |\n", r.facts(), r.states, r.cpu.Seconds())
}

// facts returns the begin of a row of the table. It is the same in each run.
func (c configuration) facts() string {
	return fmt.Sprintf("| %#q | %s | %s |", c.name, c.shows, c.expect)
}

// String returns a line of the log.
func (r run) String() string {
	return fmt.Sprintf("%-28s %-13s %8s states %4.0f s of CPU", r.name, r.verdict, r.states, r.cpu.Seconds())
}

// runTLC runs TLC with one worker, for a repeatable number of states, and with a temporary
// directory of its own for the unpacked standard modules. TLC exits with an error if a property is
// violated.
func runTLC(t *testing.T, jar string, c configuration) run {
	t.Helper()
	var output bytes.Buffer
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir="+dir,
		"-cp", jar, "tlc2.TLC", "-workers", "1", "-metadir", dir, "-config", c.name+".cfg", c.module+".tla")
	command.Stdout, command.Stderr = &output, &output
	r := run{configuration: c}
	if err := command.Run(); err != nil && output.Len() == 0 {
		r.output = err.Error()
	} else {
		r.output = output.String()
	}
	r.verdict, r.states = verdict(r.output, c), states(r.output)
	if command.ProcessState != nil {
		r.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	return r
}

var (
	violated = regexp.MustCompile(`Error: (?:Invariant|Action property) (\w+) is violated`)
	distinct = regexp.MustCompile(`(\d+) distinct states found`)
)

// verdict returns TLC's finding: accepted, the violated property, or "failed". TLC does not name a
// temporal property, so a configuration with an expected violation of one has no other.
func verdict(output string, c configuration) string {
	found := violated.FindStringSubmatch(output)
	switch {
	case strings.Contains(output, "No error has been found."):
		return accepted
	case found != nil:
		return found[1]
	case strings.Contains(output, "Temporal properties were violated.") && len(c.properties) == 1:
		return c.properties[0]
	default:
		return "failed"
	}
}

func states(output string) string {
	found := distinct.FindAllStringSubmatch(output, -1)
	if found == nil {
		return "?"
	}
	return found[len(found)-1][1]
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	one := configuration{properties: []string{"Served"}}
	for output, want := range map[string]string{
		"Model checking completed. No error has been found.": accepted,
		"Error: Invariant Short is violated.":                "Short",
		"Error: Action property OwnDeleted is violated.":     "OwnDeleted",
		"Error: Temporal properties were violated.":          "Served",
		"Error: Parsing or semantic analysis failed.":        "failed",
		"Error: Deadlock reached.":                           "failed",
		"":                                                   "failed",
	} {
		check.Equal(t, fmt.Sprintf("verdict of %q", output), verdict(output, one), want)
	}
	both := configuration{properties: []string{"Served", "LateServed"}}
	check.Equal(t, "verdict of two temporal properties", verdict("Temporal properties were violated.", both), "failed")
}

var numbers = regexp.MustCompile(`(?m) \d+ \| \d+ \|$`)

// A configuration checks the property of its expected violation, and README.md has a row for each.
func TestExpectations(t *testing.T) {
	t.Parallel()
	all := configurations(t)
	for _, c := range all {
		if c.expect != accepted && !slices.Contains(append(c.invariants, c.properties...), c.expect) {
			t.Errorf("%s expects %s, and does not check it", c.name, c.expect)
		}
		if !slices.Contains(modules, c.module) {
			t.Errorf("%s belongs to none of %v", c.name, modules)
		}
	}
	for _, module := range modules {
		want := headerOfRuns
		for _, c := range all {
			if c.module == module {
				want += c.facts() + "\n"
			}
		}
		if got := numbers.ReplaceAllString(section(t, "Configurations of "+module), ""); got != want {
			t.Errorf("README.md has these configurations of %s:\n%s\nwant\n%s\n`make spec SPECFLAGS=-update` writes them", module,
				got, want)
		}
	}
}

// readme guards README.md: tests write different sections.
var readme sync.Mutex

// section returns the text of a section of README.md.
func section(t *testing.T, title string) string {
	t.Helper()
	readme.Lock()
	defer readme.Unlock()
	_, text, _ := cutSection(t, title)
	return text
}

// replaceSection replaces the text of a section of README.md.
func replaceSection(t *testing.T, title, text string) {
	t.Helper()
	readme.Lock()
	defer readme.Unlock()
	before, _, after := cutSection(t, title)
	check.Must(t, os.WriteFile("README.md", []byte(before+text+after), 0o644))
}

// cutSection splits README.md around the text of a section.
func cutSection(t *testing.T, title string) (before, text, after string) {
	t.Helper()
	file, heading := read("README.md"), "\n### "+title+"\n\n"
	before, text, found := strings.Cut(file, heading)
	if !found {
		t.Fatalf("README.md has no section %q", title)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return before + heading, text, file[len(before)+len(heading)+len(text):]
}

var (
	reference = regexp.MustCompile(`[a-z]+(?:/\w+)+\.(?:go|lua)(?::\w+)?`)
	noCode    = regexp.MustCompile(`No code: ([^.]+)\.`)
	defined   = regexp.MustCompile(`^(\w+)(?:\([^)]*\))? ==`)
	mentioned = regexp.MustCompile(`(\\in +)?(\w+)`) // a set has \in before it
)

// definition is an operator of a module, and its comment's reference to the code.
type definition struct {
	name   string
	code   []string // path:function, or the path of a script
	noCode string   // why there is no code
	line   int
}

// definitions returns the operators of a module in order, and the names of the actions in Next.
func definitions(module string) (all []definition, actions []string) {
	var comment, next strings.Builder
	inNext := false
	for i, line := range strings.Split(module, "\n") {
		if text, ok := strings.CutPrefix(line, `\*`); ok {
			comment.WriteString(text)
			continue
		}
		if found := defined.FindStringSubmatch(line); found != nil {
			d := definition{name: found[1], code: reference.FindAllString(comment.String(), -1), line: i + 1}
			if reason := noCode.FindStringSubmatch(comment.String()); reason != nil {
				d.noCode = reason[1]
			}
			all = append(all, d)
			inNext = d.name == "Next"
		}
		if inNext {
			next.WriteString(line + "\n")
		}
		comment.Reset()
	}
	names := map[string]bool{}
	for _, found := range mentioned.FindAllStringSubmatch(next.String(), -1) {
		names[found[2]] = names[found[2]] || found[1] == ""
	}
	for _, d := range all {
		if names[d.name] && d.name != "Next" {
			actions = append(actions, d.name)
		}
	}
	return all, actions
}

// The comment of each action names the code modelled by it, and README.md lists this code.
func TestActions(t *testing.T) {
	t.Parallel()
	for _, module := range modules {
		all, actions := definitions(read(module + ".tla"))
		check.AtLeast(t, "actions of "+module, len(actions), 10)
		want, parts := "| action | code |\n|---|---|\n", ""
		for _, d := range all {
			isAction, code := slices.Contains(actions, d.name), d.noCode
			if len(d.code) > 0 {
				code = "`" + strings.Join(d.code, "`, `") + "`"
			}
			switch {
			case isAction && code == "":
				t.Errorf("%s.tla:%d: the comment of %s says neither \"Code:\" nor \"No code:\"", module, d.line, d.name)
			case isAction:
				want += fmt.Sprintf("| %#q | %s |\n", d.name, code)
			case len(d.code) > 0:
				parts += fmt.Sprintf("| %#q | %s |\n", d.name, code)
			}
		}
		want += "\n| part of actions | code |\n|---|---|\n" + parts
		switch got := section(t, "Actions of "+module); {
		case got == want:
		case *update:
			replaceSection(t, "Actions of "+module, want)
		default:
			t.Errorf("README.md has these actions of %s:\n%s\nwant\n%s\n`go test ./spec -run %s -update` writes them", module, got,
				want, t.Name())
		}
	}
}

// All code named in the specs, and so in the tables of README.md, exists: a function of Go or of
// Lua in its file, or a whole script.
func TestCodeReferences(t *testing.T) {
	t.Parallel()
	for _, file := range locker.Must(filepath.Glob("*.tla")) {
		references := reference.FindAllString(read(file), -1)
		check.AtLeast(t, "references in "+file, len(references), 20)
		slices.Sort(references)
		for _, reference := range slices.Compact(references) {
			path, function, _ := strings.Cut(reference, ":")
			code, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			declared := regexp.MustCompile(`(?m)^(?:local function|func(?: \([^)]*\))?) ` + regexp.QuoteMeta(function) + `\(`)
			if function != "" && !declared.Match(code) {
				t.Errorf("%s: %s has no function %s", file, path, function)
			}
		}
	}
}

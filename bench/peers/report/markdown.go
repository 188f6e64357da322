package report

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Markdown returns the table of the combined rows, with one line for each contender and setting,
// and a list of hanging contenders below.
func (t Table) Markdown() string {
	var lines [][]string
	head := []string{"contender"}
	if t.Setting != "" {
		head = append(head, t.Setting)
	}
	for _, m := range t.Metrics {
		if m.Heading != "" {
			head = append(head, m.Heading)
		}
	}
	lines = append(lines, head)
	for _, r := range t.Combined() {
		line := []string{r.Contender}
		if t.Setting != "" {
			line = append(line, Whole(float64(r.Setting)))
		}
		for _, m := range t.Metrics {
			if m.Heading != "" {
				line = append(line, m.text(r))
			}
		}
		if r.Hang != "" {
			line[0] += ": **hangs**"
		}
		lines = append(lines, line)
	}
	return markdown(lines) + t.hanging()
}

// hanging returns a list of the hanging contenders, if any, with an empty line before it.
func (t Table) hanging() string {
	var b strings.Builder
	for _, r := range t.Combined() {
		if r.Hang == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n")
		}
		setting := ""
		if t.Setting != "" {
			setting = fmt.Sprintf(", %s %s,", Whole(float64(r.Setting)), t.Setting)
		}
		fmt.Fprintf(&b, "- %s%s %s\n", r.Contender, setting, r.Hang)
	}
	return b.String()
}

// Pivots returns, for each of some metrics, a table with a line for each contender and a column for
// each setting, and a list of hanging contenders.
func (t Table) Pivots(metrics []string) string {
	tables := make([]string, len(metrics))
	for i, metric := range metrics {
		tables[i] = t.pivot(metric)
	}
	return strings.Join(tables, "\n") + t.hanging()
}

func (t Table) pivot(metric string) string {
	i := slices.IndexFunc(t.Metrics, func(m Metric) bool { return m.Name == metric })
	m := t.Metrics[i]
	rows := t.Combined()
	var contenders []string
	var settings []int
	for _, r := range rows {
		if !slices.Contains(contenders, r.Contender) {
			contenders = append(contenders, r.Contender)
		}
		if !slices.Contains(settings, r.Setting) {
			settings = append(settings, r.Setting)
		}
	}
	slices.Sort(settings)
	head := []string{fmt.Sprintf("%s; %s:", m.Heading, t.Setting)}
	for _, s := range settings {
		head = append(head, Whole(float64(s)))
	}
	lines := [][]string{head}
	for _, c := range contenders {
		line := []string{c}
		for _, s := range settings {
			line = append(line, pivotCell(m, rows, c, s))
		}
		lines = append(lines, line)
	}
	return markdown(lines)
}

func pivotCell(m Metric, rows []Row, contender string, setting int) string {
	for _, r := range rows {
		if r.Contender == contender && r.Setting == setting {
			if r.Hang != "" {
				return "hangs"
			}
			return m.text(r)
		}
	}
	return "-"
}

func (m Metric) text(r Row) string {
	v, ok := r.Values[m.Name]
	if !ok {
		return "-"
	}
	if m.IsStrict && v != 0 {
		return "**" + m.Format(v) + "**"
	}
	return m.Format(v)
}

// markdown aligns the columns: the first to the left, the others to the right.
func markdown(lines [][]string) string {
	var b strings.Builder
	write := func(line []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | ")) }
	write(lines[0])
	rule := []string{"---"}
	for range lines[0][1:] {
		rule = append(rule, "---:")
	}
	write(rule)
	for _, line := range lines[1:] {
		write(line)
	}
	return b.String()
}

// Replace puts text between the lines <!-- NAME --> and <!-- end --> of a page. They must exist.
func Replace(page, name, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	between := regexp.MustCompile(`(?s)<!-- ` + regexp.QuoteMeta(name) + ` -->\n.*?<!-- end -->`)
	if !between.Match(old) {
		return fmt.Errorf("%s has no lines <!-- %s --> and <!-- end -->", page, name)
	}
	changed := between.ReplaceAllLiteral(old, fmt.Appendf(nil, "<!-- %s -->\n%s<!-- end -->", name, text))
	if bytes.Equal(old, changed) {
		return nil
	}
	return os.WriteFile(page, changed, 0o644)
}

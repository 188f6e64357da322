// Package report writes the measurements of the works: CSV, Markdown and SVG.
package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/bench/peers/stats"
)

// Metric is a column of figures.
type Metric struct {
	Name     string // in CSV, with the unit, such as "p99_us"
	Heading  string // in Markdown; empty: it is in the CSV only
	Format   func(float64) string
	Combine  func([]float64) float64 // over the rounds; default: the median
	IsStrict bool                    // anything but 0 is a fault of the lock: marked in Markdown
}

// Row is the result of one contender in one round.
type Row struct {
	Round     int
	Contender string
	Setting   int                // varied by the work, such as the number of waiters; 0: nothing
	Values    map[string]float64 // by Metric.Name; missing if not measured
	Hang      string             // not empty: it did not come to its end: "hangs after 2 s: 3 of 4 ..."
}

// Table is the result of one work.
type Table struct {
	Setting string // the meaning of Row.Setting, as a word for CSV; empty: nothing
	Metrics []Metric
	Rows    []Row
}

// Max and Sum combine the values of several rounds.
var (
	Max = slices.Max[[]float64]
	Sum = func(values []float64) (sum float64) {
		for _, v := range values {
			sum += v
		}
		return sum
	}
)

// Combined returns one row for each contender and setting, in the order of their first rows, with
// the rounds combined. It hangs if it did in any round.
func (t Table) Combined() []Row {
	type key struct {
		contender string
		setting   int
	}
	var keys []key
	rounds := map[key][]Row{}
	for _, r := range t.Rows {
		k := key{r.Contender, r.Setting}
		if rounds[k] == nil {
			keys = append(keys, k)
		}
		rounds[k] = append(rounds[k], r)
	}
	all := make([]Row, 0, len(keys))
	for _, k := range keys {
		row := Row{Contender: k.contender, Setting: k.setting, Values: map[string]float64{}}
		for _, m := range t.Metrics {
			if values := valuesOf(rounds[k], m.Name); len(values) > 0 {
				row.Values[m.Name] = m.combine(values)
			}
		}
		row.Hang = hangs(rounds[k])
		all = append(all, row)
	}
	return all
}

// hangs says in how many of the rounds a contender hung, and how it did in the first of them.
func hangs(rounds []Row) string {
	hung, first := 0, ""
	for _, r := range rounds {
		if r.Hang == "" {
			continue
		}
		if hung++; hung == 1 {
			first = r.Hang
		}
	}
	if first == "" || len(rounds) == 1 {
		return first
	}
	return fmt.Sprintf("%s (in %d of %d rounds)", first, hung, len(rounds))
}

func valuesOf(rows []Row, metric string) (values []float64) {
	for _, r := range rows {
		if v, ok := r.Values[metric]; ok && !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return values
}

func (m Metric) combine(values []float64) float64 {
	if m.Combine == nil {
		return stats.Median(values)
	}
	return m.Combine(values)
}

// WriteCSV writes one line for each row. A value not measured is empty.
func (t Table) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := []string{"round", "contender"}
	if t.Setting != "" {
		head = append(head, t.Setting)
	}
	for _, m := range t.Metrics {
		head = append(head, m.Name)
	}
	if err := c.Write(append(head, "hang")); err != nil {
		return err
	}
	for _, r := range t.Rows {
		line := []string{strconv.Itoa(r.Round), r.Contender}
		if t.Setting != "" {
			line = append(line, strconv.Itoa(r.Setting))
		}
		for _, m := range t.Metrics {
			line = append(line, cell(r.Values, m.Name))
		}
		if err := c.Write(append(line, r.Hang)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func cell(values map[string]float64, metric string) string {
	v, ok := values[metric]
	if !ok || math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// Whole is a whole number with commas.
func Whole(v float64) string { return thousands(fmt.Sprintf("%.0f", v)) }

// Short has three digits or as many as needed for a whole number.
func Short(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		return Whole(v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Micros returns a duration, given in microseconds, with a suitable unit.
func Micros(v float64) string {
	switch {
	case v >= 1e6:
		return Short(v/1e6) + " s"
	case v >= 1e3:
		return Short(v/1e3) + " ms"
	}
	return Short(v) + " µs"
}

// thousands puts commas into the digits of a whole number.
func thousands(digits string) string {
	first := len(digits) % 3
	if digits != "" && digits[0] == '-' {
		return "-" + thousands(digits[1:])
	}
	out := digits[:first]
	for i := first; i < len(digits); i += 3 {
		if out != "" {
			out += ","
		}
		out += digits[i : i+3]
	}
	return out
}

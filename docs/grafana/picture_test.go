package grafana_test

import (
	"cmp"
	"flag"
	"fmt"
	"html"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
)

//go:generate go test -run ^TestPicture$ -update

var update = flag.Bool("update", false, "write dashboard.svg")

const (
	picture   = "dashboard.svg"
	unitWidth = 60 // of the grid, in pixels; its height is unitHigh
	unitHigh  = 36
	gap       = 8 // between panels
	step      = 30 * time.Second
)

// inPlace are the values of the dashboard's variables: everything, with Grafana's intervals for an
// hour of scrapes each 30 seconds.
var inPlace = strings.NewReplacer(
	"$__rate_interval", "2m", "$__range", "1h", "$job", ".*", "$instance", ".*", "$group", ".*", "$strategy", ".*")

// colours are Grafana's classic ones.
var colours = []string{
	"#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0", "#508642", "#cca300", "#447ebc", "#c15c17",
}

var named = map[string]string{"green": "#56a64b", "orange": "#ff780a", "red": "#e02f44"}

// line is a series of a panel, with a value at each step; NaN: none.
type line struct {
	name   string
	values []float64
}

// A picture of the dashboard is drawn from the simulated hour. The file has the panels of the
// dashboard; their content differs from run to run, as the waits have jitter.
func TestPicture(t *testing.T) {
	t.Parallel()
	if !*update {
		effort.NeedFull(t)
	}
	d, h := read(t), simulatedHour(t)
	drawn := h.draw(t, d)
	if *update {
		check.Must(t, os.WriteFile(picture, []byte(drawn), 0o644))
	}
	raw, err := os.ReadFile(picture)
	check.Must(t, err)
	titles := regexp.MustCompile(`(?m)class="(?:title|row)".*$`)
	if got, want := titles.FindAllString(string(raw), -1), titles.FindAllString(drawn, -1); !slices.Equal(got, want) {
		t.Errorf("%s has the panels\n%s\nwant\n%s\nRun go generate.", picture, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(titles.FindAllString(drawn, -1)) != len(d.Panels) {
		t.Errorf("not all of %d panels are drawn", len(d.Panels))
	}
	if empty := strings.Count(drawn, ">No data<"); empty > 0 {
		t.Errorf("%d panels show nothing", empty)
	}
}

// draw draws the dashboard as SVG.
func (h *hour) draw(t *testing.T, d dashboard) string {
	t.Helper()
	var b strings.Builder
	bottom := 0
	for _, p := range d.Panels {
		bottom = max(bottom, (p.GridPos.Y+p.GridPos.H)*unitHigh)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" fill="#464c54">
<title>%s, over an hour in fake time</title>
<style>.title{font-size:13px;font-weight:600;fill:#24292e}.row{font-size:15px;fill:#24292e}.big{font-size:38px;text-anchor:middle}.y{text-anchor:end}.x{text-anchor:middle}polyline{fill:none;stroke-width:1.5}</style>
<rect width="100%%" height="100%%" fill="#f4f5f5"/>
`, 24*unitWidth+gap, bottom+gap, html.EscapeString(d.Title))
	for _, p := range d.Panels {
		at := p.GridPos
		box := area{x: at.X*unitWidth + gap, y: at.Y*unitHigh + gap, w: at.W*unitWidth - gap, h: at.H*unitHigh - gap}
		if p.Type == "row" {
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" class=\"row\">%s</text>\n", box.x, box.y+18, html.EscapeString(p.Title))
			continue
		}
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\" fill=\"#fff\" stroke=\"#dce0e4\"/>\n", box.x, box.y, box.w, box.h)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" class=\"title\">%s</text>\n", box.x+8, box.y+18, html.EscapeString(p.Title))
		lines := h.evaluate(t, p)
		switch {
		case !slices.ContainsFunc(lines, func(l line) bool { return l.has() }):
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" class=\"x\">No data</text>\n", box.x+box.w/2, box.y+box.h/2)
		case p.Type == "stat":
			drawStat(&b, box, p, lines[0])
		default:
			drawSeries(&b, box, p, lines)
		}
	}
	return b.String() + "</svg>\n"
}

type area struct{ x, y, w, h int }

func (l line) has() bool {
	return slices.ContainsFunc(l.values, func(v float64) bool { return !math.IsNaN(v) })
}

func (l line) last() float64 {
	for _, v := range slices.Backward(l.values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// evaluate runs the queries of a panel over the hour, or at its end.
func (h *hour) evaluate(t *testing.T, p panel) (lines []line) {
	t.Helper()
	end := h.start.Add(lasting)
	begin := h.start.Add(2 * time.Minute) // the first rates
	for _, tg := range p.Targets {
		if tg.Instant {
			begin = end
		}
		q, err := engine.NewRangeQuery(t.Context(), &h.database, nil, inPlace.Replace(tg.Expr), begin, end, step)
		check.Must(t, err)
		result, err := q.Exec(t.Context()).Matrix()
		check.Must(t, err)
		for _, s := range result {
			lines = append(lines, line{name: legend(tg.LegendFormat, s.Metric), values: spread(s, begin, end)})
		}
		q.Close()
	}
	return lines
}

// legend fills the labels in.
func legend(format string, of labels.Labels) string {
	name := regexp.MustCompile(`\{\{(\w+)\}\}`).ReplaceAllStringFunc(format, func(label string) string { return of.Get(strings.Trim(label, "{}")) })
	return cmp.Or(strings.TrimSpace(name), "Value")
}

// spread puts the values of a series at their steps.
func spread(s promql.Series, begin, end time.Time) []float64 {
	values := slices.Repeat([]float64{math.NaN()}, int(end.Sub(begin)/step)+1)
	for _, f := range s.Floats {
		values[time.UnixMilli(f.T).Sub(begin)/step] = f.F
	}
	return values
}

// drawStat draws the last value, in the colour of the threshold below it.
func drawStat(b *strings.Builder, box area, p panel, l line) {
	colour, value := "green", l.last()
	for _, s := range p.FieldConfig.Defaults.Thresholds.Steps {
		if value >= s.Value {
			colour = s.Color
		}
	}
	if len(l.values) > 1 {
		inner := area{box.x, box.y + box.h - 36, box.w, 36}
		fmt.Fprintf(b, "<polyline points=\"%s\" stroke=\"%s\" opacity=\".4\"/>\n", points(inner, l.values, max(highest([]line{l}), 1e-9)), named[colour])
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" class=\"big\" fill=\"%s\">%s</text>\n", box.x+box.w/2, box.y+72, named[colour], inUnit(value, p.FieldConfig.Defaults.Unit))
}

// drawSeries draws the lines, stacked if the panel says so, with axes and a legend.
func drawSeries(b *strings.Builder, box area, p panel, lines []line) {
	const rows, rowHigh = 4, 14
	def := p.FieldConfig.Defaults
	lines = slices.DeleteFunc(lines, func(l line) bool { return !l.has() })
	plot := area{box.x + 52, box.y + 34, box.w - 64, box.h - 34 - 24 - rows*rowHigh}
	drawn := lines
	if def.Custom.Stacking.Mode == "normal" {
		drawn = stacked(lines)
	}
	top := cmp.Or(def.Max, nice(highest(drawn)))
	if def.Unit == "s" && top > 60 {
		top = 60 * nice(highest(drawn)/60)
	}
	for i := range 5 {
		y := plot.y + plot.h - plot.h*i/4
		fmt.Fprintf(b, "<path d=\"M%d %dh%d\" stroke=\"#e6e8ea\"/><text x=\"%d\" y=\"%d\" class=\"y\">%s</text>\n",
			plot.x, y, plot.w, plot.x-5, y+4, inUnit(top*float64(i)/4, def.Unit))
	}
	for minute := 0; minute <= 60; minute += 10 {
		x := plot.x + plot.w*max(minute-2, 0)/58
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" class=\"x\">0%d:%02d</text>\n", x, plot.y+plot.h+14, minute/60, minute%60)
	}
	for i, l := range slices.Backward(drawn) {
		colour := colours[i%len(colours)]
		if def.Custom.Stacking.Mode == "normal" {
			fmt.Fprintf(b, "<polygon points=\"%d,%d %s %d,%d\" fill=\"%s\"/>", plot.x, plot.y+plot.h, points(plot, l.values, top), plot.x+plot.w, plot.y+plot.h, pale(colour))
		}
		for part := range strings.SplitSeq(points(plot, l.values, top), "|") {
			fmt.Fprintf(b, "<polyline points=\"%s\" stroke=\"%s\"/>\n", strings.TrimSpace(part), colour)
		}
	}
	if steps := def.Thresholds.Steps; def.Custom.ThresholdsStyle.Mode != "" && steps[len(steps)-1].Value <= top {
		y := plot.y + plot.h - int(float64(plot.h)*steps[len(steps)-1].Value/top)
		fmt.Fprintf(b, "<path d=\"M%d %dh%d\" stroke=\"%s\" stroke-dasharray=\"6 4\"/>\n", plot.x, y, plot.w, named["red"])
	}
	for i, l := range lines {
		x, y := box.x+10+i/rows*(box.w/3), box.y+box.h-rows*rowHigh+i%rows*rowHigh+4
		if i == 3*rows-1 && len(lines) > 3*rows {
			fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">and %d more</text>\n", x, y, len(lines)-i)
			break
		}
		fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"3\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			x, y-5, colours[i%len(colours)], x+14, y, html.EscapeString(l.name))
	}
}

// stacked puts each line on top of those before it.
func stacked(lines []line) []line {
	all := make([]line, 0, len(lines))
	sum := make([]float64, len(lines[0].values))
	for _, l := range lines {
		for i, v := range l.values {
			if !math.IsNaN(v) {
				sum[i] += v
			}
		}
		all = append(all, line{l.name, slices.Clone(sum)})
	}
	return all
}

// points are the coordinates of values in an area; a gap is a bar.
func points(in area, values []float64, top float64) string {
	var b strings.Builder
	for i, v := range values {
		if math.IsNaN(v) {
			if i > 0 && !math.IsNaN(values[i-1]) {
				b.WriteString("| ")
			}
			continue
		}
		y := in.y + in.h - int(math.Round(float64(in.h)*min(v/top, 1)))
		fmt.Fprintf(&b, "%d,%d ", in.x+in.w*i/(len(values)-1), y)
	}
	return strings.TrimRight(b.String(), "| ")
}

func highest(lines []line) (top float64) {
	for _, l := range lines {
		for _, v := range l.values {
			if !math.IsInf(v, 0) && v > top {
				top = v
			}
		}
	}
	return top
}

// nice is the next of 1, 2, 4, 6 and 8 times a power of ten: their quarters are short.
func nice(top float64) float64 {
	if top <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(top)))
	for _, n := range []float64{1, 2, 4, 6, 8} {
		if top <= n*power {
			return n * power
		}
	}
	return 10 * power
}

// pale mixes a colour, #rrggbb, with white.
func pale(colour string) string {
	v, _ := strconv.ParseUint(colour[1:], 16, 32) // of those above
	mix := func(c uint64) uint64 { return 255 - (255-c&255)/3 }
	return fmt.Sprintf("#%02x%02x%02x", mix(v>>16), mix(v>>8), mix(v))
}

// inUnit formats a value as Grafana does in the units of the dashboard.
func inUnit(v float64, unit string) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	switch {
	case unit == "percentunit":
		return number(v*100) + "%"
	case unit == "ops":
		return number(v) + "/s"
	case unit == "s" && v >= 60:
		return number(v/60) + " min"
	case unit == "s" && (v >= 1 || v == 0):
		return number(v) + " s"
	case unit == "s":
		return number(v*1000) + " ms"
	default:
		return number(math.Round(v*100) / 100)
	}
}

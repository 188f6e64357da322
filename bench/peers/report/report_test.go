package report

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	speed = Metric{Name: "speed_per_s", Heading: "speed", Format: Whole}
	worst = Metric{Name: "worst_us", Heading: "worst", Format: Micros, Combine: Max}
	hits  = Metric{Name: "hits", Heading: "hits", Format: Whole, Combine: Sum, IsStrict: true}
	quiet = Metric{Name: "quiet", Format: Whole}
)

func row(round int, contender string, setting int, hang string, speed, worst, hits float64) Row {
	return Row{round, contender, setting, map[string]float64{
		"speed_per_s": speed, "worst_us": worst, "hits": hits, "quiet": 1,
	}, hang}
}

func table() Table {
	return Table{Setting: "waiters", Metrics: []Metric{speed, worst, hits, quiet}, Rows: []Row{
		row(1, "a/x", 1, "", 1000, 10, 0),
		row(1, "b/x", 1, "", 5, 1500, 1),
		row(1, "a/x", 8, "", 20, 2, 0),
		row(2, "b/x", 1, "", 7, 2_500_000, 2),
		row(2, "a/x", 1, "", 3000, 30, 0),
		row(2, "a/x", 8, "hangs after 2 s", 40, 3, 0),
		row(3, "a/x", 1, "", 1200, math.NaN(), 0),
	}}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	want := `| contender | waiters | speed | worst | hits |
| --- | ---: | ---: | ---: | ---: |
| a/x | 1 | 1,200 | 30.0 µs | 0 |
| b/x | 1 | 6 | 2.50 s | **3** |
| a/x: **hangs** | 8 | 30 | 3.00 µs | 0 |

- a/x, 8 waiters, hangs after 2 s (in 1 of 2 rounds)
`
	check.Equal(t, "table", table().Markdown(), want)
}

func TestPivots(t *testing.T) {
	t.Parallel()
	want := `| speed; waiters: | 1 | 8 |
| --- | ---: | ---: |
| a/x | 1,200 | hangs |
| b/x | 6 | - |

| hits; waiters: | 1 | 8 |
| --- | ---: | ---: |
| a/x | 0 | hangs |
| b/x | **3** | - |

- a/x, 8 waiters, hangs after 2 s (in 1 of 2 rounds)
`
	check.Equal(t, "pivots", table().Pivots([]string{"speed_per_s", "hits"}), want)
}

func TestCSV(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	check.Must(t, table().WriteCSV(&b))
	lines := strings.Split(b.String(), "\n")
	for i, want := range map[int]string{
		0: "round,contender,waiters,speed_per_s,worst_us,hits,quiet,hang",
		4: "2,b/x,1,7,2.5e+06,2,1,",
		6: "2,a/x,8,40,3,0,1,hangs after 2 s",
		7: "3,a/x,1,1200,,0,1,",
	} {
		check.Equal(t, fmt.Sprint("line ", i), lines[i], want)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format func(float64) string
		value  float64
		want   string
	}{
		{Whole, 0, "0"}, {Whole, 999.6, "1,000"}, {Whole, 1234567, "1,234,567"}, {Whole, -12345, "-12,345"}, {Whole, -123, "-123"},
		{Short, 0.981, "0.98"}, {Short, 12.34, "12.3"}, {Short, 1234.5, "1,234"},
		{Micros, 0.5, "0.50 µs"}, {Micros, 999, "999 µs"}, {Micros, 1500, "1.50 ms"}, {Micros, 12_345_678, "12.3 s"},
	} {
		check.Equal(t, fmt.Sprint(c.value), c.format(c.value), c.want)
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	text := "a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\nkept\n<!-- end -->\n"
	check.Must(t, os.WriteFile(page, []byte(text), 0o600))
	check.Must(t, Replace(page, "one", "$1 new\n"))
	got, err := os.ReadFile(page)
	if want := strings.Replace(text, "old", "$1 new", 1); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	check.Equal(t, "a page without the lines is accepted", Replace(page, "three", "") == nil, false)
}

// A picture has a line for each contender with a point; a hanging one has none.
func TestDraw(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plot.svg")
	p := Plot{Title: "Speed", X: "waiters", Y: "speed", Metric: "speed_per_s"}
	check.Must(t, p.Draw(table(), path))
	svg := locker.Must(os.ReadFile(path))
	for _, want := range []string{">a/x<", ">b/x<", ">Speed<", ">waiters<", "Arial"} {
		check.Contains(t, "picture", string(svg), want)
	}
	check.OK(t, (Plot{Metric: "unknown"}).Draw(table(), path+".none"))
	if _, err := os.Stat(path + ".none"); !os.IsNotExist(err) {
		t.Errorf("a picture of nothing: %v", err)
	}
}

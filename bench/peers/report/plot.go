package report

import (
	"bytes"
	"image/color"
	"math"
	"os"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is a picture of a table: a metric against the setting, a line for each contender. Both axes
// are logarithmic.
type Plot struct {
	File   string // in the folder of the reports
	Title  string
	X, Y   string // the labels of the axes, with units
	Metric string
	Scale  float64 // factor from a value to its unit; 0: 1
}

const (
	width       = 8 * vg.Inch
	height      = 4.2 * vg.Inch
	legendWidth = 2.1 * vg.Inch
	margin      = 0.12 * vg.Inch
)

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// Draw writes the picture as SVG. A contender has no point at a setting where it hangs. It does
// nothing if there is nothing to draw.
func (p Plot) Draw(t Table, path string) error {
	rows := slices.DeleteFunc(t.Combined(), func(r Row) bool { return r.Hang != "" || !(r.Values[p.Metric] > 0) })
	if len(rows) == 0 {
		return nil
	}
	picture, legend := p.layout(), newLegend()
	for _, contender := range contendersOf(rows) {
		line, points, err := plotter.NewLinePoints(p.points(rows, contender))
		if err != nil {
			return err
		}
		line.LineStyle, points.GlyphStyle = styles(contender)
		picture.Add(line, points)
		legend.Add(contender, line, points)
	}
	picture.X.Tick.Marker = ticksAt(rows)
	widen(&picture.Y)
	widen(&picture.X)
	return save(path, picture, legend)
}

func (p Plot) layout() *plot.Plot {
	picture := plot.New()
	picture.Title.Text, picture.X.Label.Text, picture.Y.Label.Text = p.Title, p.X, p.Y
	picture.Title.Padding = vg.Points(8)
	picture.Title.TextStyle.Font = font.Font{Typeface: sans.Typeface, Variant: sans.Variant, Size: 13}
	for _, axis := range []*plot.Axis{&picture.X, &picture.Y} {
		axis.Scale = plot.LogScale{}
		axis.Label.TextStyle.Font = font.Font{Typeface: sans.Typeface, Variant: sans.Variant, Size: 11}
		axis.Tick.Label.Font = font.Font{Typeface: sans.Typeface, Variant: sans.Variant, Size: 10}
	}
	picture.Y.Tick.Marker = plot.TickerFunc(decades)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{Y: 225}, color.Gray{Y: 225}
	picture.Add(grid)
	return picture
}

func newLegend() plot.Legend {
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.ThumbnailWidth = vg.Points(30)
	legend.Padding = vg.Points(4)
	legend.TextStyle.Font = font.Font{Typeface: sans.Typeface, Variant: sans.Variant, Size: 10}
	return legend
}

func contendersOf(rows []Row) (names []string) {
	for _, r := range rows {
		if !slices.Contains(names, r.Contender) {
			names = append(names, r.Contender)
		}
	}
	return names
}

func (p Plot) points(rows []Row, contender string) (points plotter.XYs) {
	scale := p.Scale
	if scale == 0 {
		scale = 1
	}
	for _, r := range rows {
		if r.Contender == contender {
			points = append(points, plotter.XY{X: float64(r.Setting), Y: r.Values[p.Metric] * scale})
		}
	}
	slices.SortFunc(points, func(a, b plotter.XY) int { return int(math.Copysign(1, a.X-b.X)) })
	return points
}

// ticksAt are the settings of the rows.
func ticksAt(rows []Row) (ticks plot.ConstantTicks) {
	var seen []int
	for _, r := range rows {
		if !slices.Contains(seen, r.Setting) {
			seen = append(seen, r.Setting)
			ticks = append(ticks, plot.Tick{Value: float64(r.Setting), Label: Whole(float64(r.Setting))})
		}
	}
	return ticks
}

// decades are the ticks of a logarithmic axis: a label at each power of ten, and at its double and
// fivefold too if the axis is short.
func decades(from, to float64) (ticks []plot.Tick) {
	short := to/from < 1000
	for power := math.Floor(math.Log10(from)); power <= math.Ceil(math.Log10(to)); power++ {
		for digit := 1.0; digit < 10; digit++ {
			v := digit * math.Pow(10, power)
			if v < from || v > to {
				continue
			}
			label := ""
			if digit == 1 || short && (digit == 2 || digit == 5) {
				label = plain(v)
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}

func plain(v float64) string {
	if v >= 1000 {
		return Whole(v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// widen leaves some room at the ends of a logarithmic axis.
func widen(a *plot.Axis) {
	const room = 1.15
	a.Min, a.Max = a.Min/room, a.Max*room
}

// save writes the plot with its legend.
func save(path string, picture *plot.Plot, legend plot.Legend) error {
	svg := vgsvg.New(width, height)
	paint(draw.New(svg), picture, legend)
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return err
	}
	// Few have the font by whose measures it was laid out.
	text := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	return os.WriteFile(path, text, 0o644)
}

// paint draws the plot, and its legend on the right.
func paint(all draw.Canvas, picture *plot.Plot, legend plot.Legend) {
	all.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: height}, {Y: height}})
	picture.Draw(draw.Crop(all, margin, -legendWidth, margin, -margin))
	legend.Draw(draw.Crop(all, width-legendWidth+margin, -margin, 0, -0.4*vg.Inch))
}

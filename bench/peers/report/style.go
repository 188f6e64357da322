package report

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A library has a colour, a client has a glyph and a dash. The colours are those of Okabe and Ito,
// distinct with any kind of colour vision.
var (
	colours = map[string]color.Color{
		"holdfast":          color.RGBA{R: 0, G: 114, B: 178, A: 255},   // blue
		"redsync":           color.RGBA{R: 230, G: 159, B: 0, A: 255},   // orange
		"redsync-1ms":       color.RGBA{R: 213, G: 94, B: 0, A: 255},    // vermilion
		"redislock":         color.RGBA{R: 0, G: 158, B: 115, A: 255},   // bluish green
		"redislock-1ms":     color.RGBA{R: 86, G: 180, B: 233, A: 255},  // sky blue
		"rueidislock":       color.RGBA{R: 204, G: 121, B: 167, A: 255}, // reddish purple
		"bare":              color.Gray{Y: 128},
		"holdfast-handover": color.Black,
		"holdfast-fair":     color.RGBA{R: 240, G: 228, B: 66, A: 255}, // yellow
		"redsync-failfast":  color.Gray{Y: 64},
	}
	glyphs = map[string]draw.GlyphDrawer{
		"goredis": draw.CircleGlyph{},
		"rueidis": draw.BoxGlyph{},
		"redigo":  draw.PyramidGlyph{},
	}
	dashes = map[string][]vg.Length{
		"rueidis": {vg.Points(6), vg.Points(2)},
		"redigo":  {vg.Points(2), vg.Points(2)},
	}
)

// styles returns the styles of a contender's line and points. An unlisted library is black.
func styles(contender string) (draw.LineStyle, draw.GlyphStyle) {
	library, client, _ := strings.Cut(contender, "/")
	colour, ok := colours[library]
	if !ok {
		colour = color.Black
	}
	glyph, ok := glyphs[client]
	if !ok {
		glyph = draw.CrossGlyph{}
	}
	return draw.LineStyle{Color: colour, Width: vg.Points(1.5), Dashes: dashes[client]},
		draw.GlyphStyle{Color: colour, Radius: vg.Points(3), Shape: glyph}
}

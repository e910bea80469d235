package page

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Sizes of a plot, in its own units.
const (
	width    = 800
	left     = 230 // where marks begin; the rows' names stand before it
	right    = 640 // where they end; the rows' figures stand behind it
	rowHigh  = 22
	headHigh = 30 // a group's
	top      = 76 // for the title, the key and the head of the figures
	bottom   = 46 // for the axis
)

// Colours follow the reader's theme. The plot has a background of its own, because a page may be
// lighter or darker than the theme suggests.
const style = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}
.ground{fill:#fff}.title{font-size:15px;font-weight:600}.soft{fill:#59636e}.group{font-weight:600}
.grid{stroke:#d1d9e0}.end{text-anchor:end}.middle{text-anchor:middle}
.line{stroke:#818b98;stroke-width:6}.thin{stroke:#818b98;stroke-width:1.5}.dot{fill:#59636e}
.ours .line,.ours .thin{stroke:#0969da}.ours .dot{fill:#0969da}.ours text{fill:#0969da;font-weight:600}
.once{fill:#54aeff}.twice{fill:#d4582a}.missed{fill:#afb8c1}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.ground{fill:#0d1117}.soft{fill:#9198a1}.grid{stroke:#30363d}
.line,.thin{stroke:#6e7681}.dot{fill:#9198a1}
.ours .line,.ours .thin{stroke:#4493f8}.ours .dot{fill:#4493f8}.ours text{fill:#4493f8}
.once{fill:#1f6feb}.twice{fill:#e0703f}.missed{fill:#484f58}
}
</style>
`

// canvas is a plot that grows downwards.
type canvas struct {
	b strings.Builder
	y int
}

func newCanvas(title, key, head string) *canvas {
	c := &canvas{y: top}
	c.text(16, 26, "title", title)
	c.text(16, 48, "soft", key)
	c.text(width-16, 68, "soft end", head)
	return c
}

func (c *canvas) text(x float64, y int, class, s string) {
	fmt.Fprintf(&c.b, "<text x=\"%.1f\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, html.EscapeString(s))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, class)
}

func (c *canvas) dot(x, y float64) {
	fmt.Fprintf(&c.b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" class=\"dot\"/>\n", x, y)
}

func (c *canvas) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(&c.b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"/>\n", x, y, w, h, class)
}

// group begins a group of rows.
func (c *canvas) group(name string) {
	c.y += headHigh
	c.text(16, c.y-9, "group", name)
}

// row begins a row, and returns the height at which its marks are; end ends it.
func (c *canvas) row(name, figures string, ours bool) (middle float64, end func()) {
	class := "row"
	if ours {
		class = "row ours"
	}
	fmt.Fprintf(&c.b, "<g class=\"%s\">\n", class)
	c.text(left-14, c.y+16, "end", name)
	c.text(width-16, c.y+16, "end", figures)
	middle = float64(c.y) + rowHigh/2
	c.y += rowHigh
	return middle, func() { c.b.WriteString("</g>\n") }
}

// mark is a place on the axis and what stands there.
type mark struct {
	x    float64
	word string
}

// svg ends the plot with an axis under the rows, and lines of it behind them.
func (c *canvas) svg(title string, axis []mark, name string) string {
	for _, m := range axis {
		c.text(m.x, c.y+18, "soft middle", m.word)
	}
	c.text((left+right)/2, c.y+38, "soft middle", name)
	var b strings.Builder
	high := c.y + bottom
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"%s\">\n",
		width, high, width, high, html.EscapeString(title))
	b.WriteString(style)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" class=\"ground\"/>\n", width, high)
	for _, m := range axis {
		fmt.Fprintf(&b, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"grid\"/>\n", m.x, top, m.x, c.y)
	}
	b.WriteString(c.b.String())
	b.WriteString("</svg>\n")
	return b.String()
}

// logScale places positive figures between left and right, a decade as wide as any other.
type logScale struct{ least, most int } // powers of ten

// newLogScale has room for all figures. A figure of 0 or less counts as the least.
func newLogScale(all []float64) logScale {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, f := range all {
		if f > 0 {
			lo, hi = min(lo, f), max(hi, f)
		}
	}
	if lo > hi {
		lo, hi = 1, 10
	}
	s := logScale{int(math.Floor(math.Log10(lo))), int(math.Ceil(math.Log10(hi)))}
	s.most = max(s.most, s.least+1)
	return s
}

func (s logScale) at(f float64) float64 {
	if f <= 0 {
		return left
	}
	part := (math.Log10(f) - float64(s.least)) / float64(s.most-s.least)
	return left + (right-left)*min(max(part, 0), 1)
}

// axis has a mark at each power of ten.
func (s logScale) axis() (all []mark) {
	for p := s.least; p <= s.most; p++ {
		f := math.Pow10(p)
		word := thousands(int(f))
		if p < 0 {
			word = strconv.FormatFloat(f, 'f', -p, 64)
		}
		all = append(all, mark{s.at(f), word})
	}
	return all
}

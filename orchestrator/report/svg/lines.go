package svg

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Point is a stretch of a series: its mean, and the least and the largest value.
type Point struct {
	At             float64 // middle of the stretch, in the axis' unit
	Mean, Min, Max float64
}

// Series is a line over time. A NaN in Mean breaks it.
type Series struct {
	Class  string // "k0" …: colour and dashes
	Title  string // when pointed at
	Points []Point
}

// Panel is one quantity over time, with a line for each series.
type Panel struct {
	Title, Desc string
	Name        string // above the lines
	Until       float64
	Top         float64 // upper end of the scale where it is known (100 for percentages); 0: by the values
	Series      []Series
	Time        bool // label the time axis
}

// Size of the drawing area, in the units that the paths are given in.
const (
	linesWide = 1000
	linesDeep = 640
	linesHigh = 64 // of it on the page, in px
	linesHead = 18
)

// Lines draws a panel: the mean of every stretch as a line, its extent shaded.
func Lines(p Panel) string {
	height := linesHead + linesHigh + 4
	if p.Time {
		height += 16
	}
	if !(p.Until > 0) || math.IsInf(p.Until, 0) {
		p.Until = 1
	}
	d := begin("lines", height, p.Title, p.Desc)
	d.label("name", 0, 12, p.Name)
	top := p.top()
	d.label("num", 100, 12, Number(top, top/100))
	bottom := float64(linesHead + linesHigh)
	d.line("grid", 0, linesHead, 100, linesHead)
	d.line("grid", 0, linesHead+linesHigh/2, 100, linesHead+linesHigh/2)
	d.line("tick", 0, bottom, 100, bottom)
	fmt.Fprintf(d, `<svg x="0" y="%d" width="100%%" height="%d" viewBox="0 0 %d %d" preserveAspectRatio="none">`, linesHead, linesHigh, linesWide, linesDeep)
	d.text("title", p.Title)
	for _, s := range p.Series {
		d.series(s, p.Until, top)
	}
	d.WriteString("</svg>")
	if p.Time {
		d.times(p.Until, bottom)
	}
	return d.end()
}

// times labels the time axis, in seconds.
func (d *drawing) times(until, bottom float64) {
	step := nice(until / 3.5)
	for i := 0.0; i*step <= until*(1+1e-9) && i < 20; i++ {
		x := i * step / until * 100
		d.line("tick", x, bottom, x, bottom+4)
		s := Number(i*step, step)
		if i == 0 {
			s = "0 s"
		}
		class := "num"
		if int(i)%2 == 1 {
			class = "num minor"
		}
		d.label(class, x, bottom+16, s)
	}
}

// top of the scale: 0 is its bottom.
func (p *Panel) top() float64 {
	if p.Top > 0 {
		return p.Top
	}
	var all []float64
	for _, s := range p.Series {
		for _, x := range s.Points {
			all = append(all, x.Max)
		}
	}
	all = finite(all)
	if len(all) == 0 || slices.Max(all) <= 0 {
		return 1
	}
	most := slices.Max(all)
	step := nice(most / 3)
	if t := math.Ceil(most/step) * step; !math.IsInf(t, 0) && t > 0 {
		return t
	}
	return most
}

// series draws the extent and the line, in runs without a gap.
func (d *drawing) series(s Series, until, top float64) {
	fmt.Fprintf(d, `<g class="%s">`, s.Class)
	d.text("title", s.Title)
	for from := 0; from < len(s.Points); {
		if math.IsNaN(s.Points[from].Mean) {
			from++
			continue
		}
		to := from
		for to < len(s.Points) && !math.IsNaN(s.Points[to].Mean) {
			to++
		}
		d.stretch(s.Points[from:to], until, top)
		from = to
	}
	d.WriteString("</g>")
}

func (d *drawing) stretch(points []Point, until, top float64) {
	x := func(p Point) int { return place(p.At/until, linesWide) }
	y := func(v float64) int { return linesDeep - place(v/top, linesDeep) }
	if slices.ContainsFunc(points, func(p Point) bool { return y(p.Max) != y(p.Min) }) && len(points) > 1 {
		d.WriteString(`<path class="extent" d="`)
		pen := pen{d: d}
		for _, p := range points {
			pen.to(x(p), y(p.Max))
		}
		for _, p := range slices.Backward(points) {
			pen.to(x(p), y(p.Min))
		}
		d.WriteString(`Z"/>`)
	}
	d.WriteString(`<path class="line" d="`)
	pen := pen{d: d}
	for _, p := range points {
		pen.to(x(p), y(p.Mean))
	}
	if len(points) == 1 { // a line of no length is not seen
		d.WriteString("h4")
	}
	d.WriteString(`"/>`)
}

// pen writes a path in relative steps, which are short.
type pen struct {
	d    *drawing
	x, y int
	down bool
}

func (p *pen) to(x, y int) {
	if !p.down {
		p.d.WriteString("M" + strconv.Itoa(x) + " " + strconv.Itoa(y) + "l")
		p.down, p.x, p.y = true, x, y
		p.d.WriteString("0 0")
		return
	}
	p.d.WriteString(" " + strconv.Itoa(x-p.x) + " " + strconv.Itoa(y-p.y))
	p.x, p.y = x, y
}

// place of a share on a side of n units, kept inside it.
func place(share float64, n int) int {
	if !(share > 0) {
		return 0
	}
	return int(math.Round(math.Min(share, 1) * float64(n)))
}

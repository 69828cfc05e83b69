package svg

import (
	"fmt"
	"math"
	"strings"
)

// Height of a row of Strip or Forest, and of an axis, in px.
const (
	RowHeight  = 30
	AxisHeight = 22
)

// bleed is how far lines that run through all rows go on above and below one, in
// px: the cell that holds the row may be higher, and cuts them.
const bleed = 60

// Shape of a mark. It says what its colour says.
type Shape string

// Shapes, named after what the report uses them for.
const (
	Better       Shape = "faster"
	Worse        Shape = "slower"
	Same         Shape = "same"
	NoEvidence   Shape = "noevidence"
	Inconclusive Shape = "inconclusive"
	Invalid      Shape = "invalid"
	NoBoot       Shape = "noboot"
	Unjudged     Shape = "unjudged"
)

// outline of every shape, around 0,0 and within 7 px of it.
func outline() []struct {
	shape Shape
	path  string
} {
	return []struct {
		shape Shape
		path  string
	}{
		{Better, "M0-6.5 6.5 5H-6.5Z"},
		{Worse, "M0 6.5 6.5-5H-6.5Z"},
		{Same, "M-5-5H5V5H-5Z"},
		{NoEvidence, "M-5 0A5 5 0 1 1 5 0A5 5 0 1 1-5 0Z"},
		{Inconclusive, "M0-6.5 6.5 0 0 6.5-6.5 0Z"},
		{Invalid, "M-5-5 5 5M5-5-5 5"},
		{NoBoot, "M-5 0A5 5 0 1 1 5 0A5 5 0 1 1-5 0ZM-3.5 3.5 3.5-3.5"},
		{Unjudged, "M-5 0H5M0-5V5"},
	}
}

// Shapes are the definitions that every page with plots must hold once.
func Shapes() string {
	var b strings.Builder
	b.WriteString(`<svg class="defs" width="0" height="0" aria-hidden="true" focusable="false"><title>shapes of the marks</title><defs>`)
	for _, o := range outline() {
		fmt.Fprintf(&b, `<path id="shape-%s" d="%s"/>`, o.shape, o.path)
	}
	b.WriteString("</defs></svg>")
	return b.String()
}

// Icon is a shape beside the word that says the same: hidden from readers of text.
func Icon(s Shape) string {
	return fmt.Sprintf(`<svg class="icon" width="16" height="16" aria-hidden="true" focusable="false"><title>%s</title><use href="#shape-%s" class="v-%s" x="8" y="8"/></svg>`, s, s, s)
}

// Mark is a value, and what is said about it when it is pointed at.
type Mark struct {
	Value float64
	Title string
}

// StripRow is one row of a strip plot.
type StripRow struct {
	Title, Desc string
	Class       string // of the kernel: "k0" …
	Boots       []Mark
	Trials      []Mark     // inside the boots: drawn smaller, below them
	Median      *Mark      // nil: none
	Interval    [2]float64 // low and high
	HasInterval bool
	IntervalSay string
	Baseline    *Mark // the baseline's median; nil: none
}

// Most marks of a row that are drawn one by one; more are drawn as the places
// they take, each with its number.
const most = 120

// Strip draws one row: every boot a dot, the median a tick, its interval a bar,
// the baseline a broken line.
func Strip(a Axis, r StripRow) string {
	d := begin("strip "+r.Class, RowHeight, r.Title, r.Desc)
	d.grid(a)
	if r.HasInterval {
		d.rect("ci", a.At(r.Interval[0]), a.At(r.Interval[1]), 8, 10, r.IntervalSay)
	}
	if r.Baseline != nil && a.Holds(r.Baseline.Value) {
		x := a.At(r.Baseline.Value)
		d.line("base", x, -bleed, x, RowHeight+bleed)
	}
	if r.Median != nil {
		x := a.At(r.Median.Value)
		d.rect("med", x-0.35, x+0.35, 4, 18, r.Median.Title)
	}
	d.marks(a, "trial", r.Trials, 25, 1.5, nil)
	d.marks(a, "boot", r.Boots, 13, 3.5, []float64{0, -3.5, 3.5, -1.8, 1.8})
	return d.end()
}

// marks draws dots around y, shifted in turn so that equal ones are seen.
func (d *drawing) marks(a Axis, class string, list []Mark, y, r float64, shift []float64) {
	if len(list) == 0 {
		return
	}
	d.WriteString(`<g class="` + class + `">`)
	defer d.WriteString("</g>")
	if len(list) > most {
		d.places(a, list, y, r)
		return
	}
	for i, m := range list {
		if !a.Holds(m.Value) {
			continue
		}
		dy := 0.0
		if len(shift) > 0 {
			dy = shift[i%len(shift)]
		}
		d.circle(a.At(m.Value), y+dy, r, m.Title)
	}
}

// places draws one dot for all marks within half a percent of the width.
func (d *drawing) places(a Axis, list []Mark, y, r float64) {
	var n [201]int
	var low, high [201]float64
	for _, m := range list {
		if !a.Holds(m.Value) {
			continue
		}
		i := min(int(a.At(m.Value)*2), 200)
		if n[i] == 0 || m.Value < low[i] {
			low[i] = m.Value
		}
		if n[i] == 0 || m.Value > high[i] {
			high[i] = m.Value
		}
		n[i]++
	}
	for i, k := range n {
		if k == 0 {
			continue
		}
		say := fmt.Sprintf("%d from %s to %s", k, Number(low[i], 0), Number(high[i], 0))
		if low[i] == high[i] {
			say = fmt.Sprintf("%d at %s", k, Number(low[i], 0))
		}
		d.circle(float64(i)/2+0.25, y, r, say)
	}
}

// ForestRow is one comparison: a ratio to the baseline, above 1 when better.
type ForestRow struct {
	Title, Desc string
	Shape       Shape
	Ratio       float64
	Interval    [2]float64
	HasInterval bool
	Zone        float64 // smallest effect of interest, as a share; 0: none
}

// Forest draws one row: the ratio as the shape of its verdict, its interval a
// line, the zone of no interest shaded. What goes beyond the axis ends in an arrow.
func Forest(a Axis, r ForestRow) string {
	d := begin("forest", RowHeight, r.Title, r.Desc)
	if r.Zone > 0 {
		d.rect("zone", a.At(1/(1+r.Zone)), a.At(1+r.Zone), -bleed, RowHeight+2*bleed, "")
	}
	d.grid(a)
	one := a.At(1)
	d.line("base", one, -bleed, one, RowHeight+bleed)
	const y = RowHeight / 2
	if r.HasInterval {
		lo, hi := r.Interval[0], r.Interval[1]
		d.line("whisker", a.At(lo), y, a.At(hi), y)
		d.whiskerEnd(a, lo, y)
		d.whiskerEnd(a, hi, y)
	}
	if !math.IsNaN(r.Ratio) {
		d.use(r.Shape, a.At(r.Ratio), y, r.Title)
	}
	return d.end()
}

// whiskerEnd is a small bar, or an arrow when the interval goes on beyond the axis.
func (d *drawing) whiskerEnd(a Axis, v, y float64) {
	x := a.At(v)
	if a.Holds(v) {
		d.line("whisker", x, y-4, x, y+4)
		return
	}
	path := "M-1-4 5 0-1 4"
	if x < 50 {
		path = "M1-4-5 0 1 4"
	}
	fmt.Fprintf(d, `<svg x="%s" y="%s" width="1" height="1" overflow="visible"><title>goes on beyond the axis</title><path class="whisker" d="%s"/></svg>`, pc(x), px(y), path)
}

// Ruler draws an axis with its labels, to stand above the rows. The hints stand
// at its ends ("worse", "better"); both may be empty.
func Ruler(a Axis, title, low, high string) string {
	height := AxisHeight
	if low+high != "" {
		height += 16
	}
	d := begin("ruler", height, title, "")
	if low != "" {
		d.label("hint", 0, 12, "◂ "+low)
	}
	if high != "" {
		d.label("hint", 100, 12, high+" ▸")
	}
	y := float64(height)
	for _, t := range a.Ticks {
		x := a.At(t.Value)
		d.line("tick", x, y-5, x, y)
		class := "num"
		if t.Minor {
			class = "num minor"
		}
		d.label(class, x, y-8, t.Label)
	}
	return d.end()
}

func (d *drawing) grid(a Axis) {
	for _, t := range a.Ticks {
		x := a.At(t.Value)
		d.line("grid", x, -bleed, x, RowHeight+bleed)
	}
}

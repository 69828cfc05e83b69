package svg

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// drawing collects the elements of one SVG.
type drawing struct{ strings.Builder }

// begin opens an image. Its title is the text that stands for it.
func begin(class string, height int, title, desc string) *drawing {
	d := &drawing{}
	fmt.Fprintf(d, `<svg class="%s" width="100%%" height="%d" role="img">`, class, height)
	d.text("title", title)
	d.text("desc", desc)
	return d
}

func (d *drawing) end() string {
	d.WriteString("</svg>")
	return d.String()
}

// text adds <tag>text</tag>, nothing for no text.
func (d *drawing) text(tag, s string) {
	if s != "" {
		d.WriteString("<" + tag + ">" + html.EscapeString(s) + "</" + tag + ">")
	}
}

// line from (x1 %, y1) to (x2 %, y2).
func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, pc(x1), px(y1), pc(x2), px(y2))
}

// rect over a part of the width; title may be empty.
func (d *drawing) rect(class string, x1, x2, y, height float64, title string) {
	if x2 < x1 {
		x1, x2 = x2, x1
	}
	fmt.Fprintf(d, `<rect class="%s" x="%s" width="%s" y="%s" height="%s"`, class, pc(x1), pc(math.Max(x2-x1, 0.2)), px(y), px(height))
	d.close("rect", title)
}

func (d *drawing) circle(x, y, r float64, title string) {
	fmt.Fprintf(d, `<circle cx="%s" cy="%s" r="%s"`, pc(x), px(y), px(r))
	d.close("circle", title)
}

// use places a shape of Shapes.
func (d *drawing) use(shape Shape, x, y float64, title string) {
	fmt.Fprintf(d, `<use href="#shape-%s" class="v-%s" x="%s" y="%s"`, shape, shape, pc(x), px(y))
	d.close("use", title)
}

// close ends an element that may hold a title.
func (d *drawing) close(tag, title string) {
	if title == "" {
		d.WriteString("/>")
		return
	}
	d.WriteString(">")
	d.text("title", title)
	d.WriteString("</" + tag + ">")
}

// label writes text at x percent; near an end it grows inwards, so that it is
// whole at MinWidth already.
func (d *drawing) label(class string, x, y float64, s string) {
	anchor, half := "middle", textWidth(s)/2/MinWidth*100
	if x < half {
		anchor = "start"
	} else if x > 100-half {
		anchor = "end"
	}
	fmt.Fprintf(d, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, pc(x), px(y), anchor, html.EscapeString(s))
}

// textWidth estimates the width of a label in px, on the safe side for the fonts
// that browsers take.
func textWidth(s string) float64 { return 6.6 * float64(utf8.RuneCountInString(s)) }

// pc is a percentage, px a length; both short.
func pc(x float64) string { return px(x) + "%" }

func px(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	s := strconv.FormatFloat(x, 'f', 2, 64)
	s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

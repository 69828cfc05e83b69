package svg

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestNumber(t *testing.T) {
	for _, x := range []struct {
		v, step float64
		want    string
	}{
		{0, 1, "0"}, {94, 2, "94"}, {0.30000000000000004, 0.1, "0.3"}, {1.5, 0.5, "1.5"}, {-20, 10, "-20"}, {1e7, 1e6, "1e7"}, {12345678, 0, "1.23457e7"},
		{1e-300, 0, "1e-300"}, {1.7e308, 0, "1.7e308"}, {0.00012, 0.00001, "0.00012"}, {10099.2, 0, "10099.2"}, {0.100995, 0, "0.100995"}, {100, 20, "100"}, {3e-5, 1e-5, "3e-5"},
	} {
		if got := Number(x.v, x.step); got != x.want {
			t.Errorf("%v by %v: %q, want %q", x.v, x.step, got, x.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{-0.0016: "−0.16 %", 0.001: "+0.1 %", 0: "0 %", 0.392: "+39.2 %", -0.05: "−5 %", 1: "+100 %", 12.3456: "+1235 %", 0.0004: "+0.04 %", -0.00001: "−0.001 %", 99.5: "×100", 1e300: "×1e300"} {
		if got := Percent(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}

// axes of all kinds of values: in order, inside, with a label at least.
func TestAxes(t *testing.T) {
	for name, values := range awkward() {
		for kind, a := range map[string]Axis{"scale": Scale(values), "linear": Linear(values), "log": Log(values)} {
			if len(a.Ticks) == 0 {
				t.Errorf("%s %s: no tick", name, kind)
			}
			last := -1.0
			for _, k := range a.Ticks {
				x := a.At(k.Value)
				if !(x >= left-1e-6) || !(x <= right+1e-6) || x <= last || k.Label == "" || strings.Contains(k.Label, "Inf") || strings.Contains(k.Label, "NaN") {
					t.Errorf("%s %s: tick %q of %g at %g after %g", name, kind, k.Label, k.Value, x, last)
				}
				last = x
			}
			for _, v := range values {
				if x := a.At(v); !(x >= left) || !(x <= right) {
					t.Errorf("%s %s: %g at %g", name, kind, v, x)
				}
				if kind != "log" && Number(v, 0) != "NaN" && !math.IsInf(v, 0) && !a.Holds(v) {
					t.Errorf("%s %s: %g is not on the axis", name, kind, v)
				}
			}
		}
	}
}

func awkward() map[string][]float64 {
	return map[string][]float64{
		"none": nil, "one": {5}, "equal": {5, 5, 5}, "zeros": {0, 0}, "negative": {-7, -3}, "around zero": {-1, 2}, "huge": {1e300, 1.7e308}, "tiny": {5e-324, 1e-300},
		"all": {1e-300, 1, 1e300}, "opposite": {-1.7e308, 1.7e308}, "close": {1, math.Nextafter(1, 2)}, "close huge": {1e15, 1e15 + 1}, "usual": {93.1, 94.2, 101.9},
		"not finite": {math.NaN(), math.Inf(1), math.Inf(-1), 2, 3}, "decades": {1, 1e6}, "long": {123456.75, 123456.76}, "big": {1234567, 1234999}, "subnormal": {5e-324, 1e-323},
	}
}

func TestTicksAreRound(t *testing.T) {
	for want, values := range map[string][]float64{"55 56 57 58 59 60": {54.9, 60.8}, "0 20 40 60 80 100": {0, 100}, "-1 -0.5 0 0.5 1": {-1, 1}, "1 100 10000 1000000": {1, 1e6}} {
		var got []string
		for _, k := range Scale(values).Ticks {
			got = append(got, k.Label)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%v: %s, want %s", values, s, want)
		}
	}
}

func TestChangeIsSymmetrical(t *testing.T) {
	for _, reach := range []float64{0, 1e-12, 1e-4, 0.01, 0.05, 0.3, 0.7, 1, 2, 10, 690, math.Inf(1), math.NaN(), 1e9} {
		a := Change(reach)
		if x := a.At(1); math.Abs(x-50) > 1e-6 {
			t.Errorf("reach %g: no change at %g", reach, x)
		}
		if lo, hi := a.At(0.99), a.At(1/0.99); math.Abs(lo+hi-100) > 1e-6 {
			t.Errorf("reach %g: %g and %g", reach, lo, hi)
		}
		if n := len(a.Ticks); n < 2 || n > 5 {
			t.Errorf("reach %g: %d ticks", reach, n)
		}
		Ruler(a, "t", "worse", "better")
	}
}

// Every drawing is well-formed XML with a title, holds no NaN, and every place is
// inside it.
func TestDrawings(t *testing.T) {
	for name, values := range awkward() {
		a := Scale(values)
		var marks []Mark
		for _, v := range values {
			marks = append(marks, Mark{v, "<b>&\"'"})
		}
		row := StripRow{Title: "a & b <c>", Class: "k0", Boots: marks, Trials: marks}
		if len(values) > 1 {
			row.Interval, row.HasInterval, row.Median, row.Baseline = [2]float64{values[0], values[1]}, true, &marks[0], &marks[1]
		}
		sound(t, name+" strip", Strip(a, row))
		sound(t, name+" ruler", Ruler(a, "axis", "<worse>", "better"))
		for _, v := range values {
			sound(t, name+" forest", Forest(Change(0.3), ForestRow{Title: "x", Shape: Better, Ratio: v, Interval: [2]float64{v / 2, v * 2}, HasInterval: true, Zone: 0.01}))
		}
		var points []Point
		for i, v := range values {
			points = append(points, Point{At: float64(i), Mean: v, Min: v, Max: v * 2})
		}
		sound(t, name+" lines", Lines(Panel{Title: "<t>", Name: "n&m", Until: float64(len(values)), Series: []Series{{Class: "k1", Title: "&", Points: points}}, Time: true}))
	}
	sound(t, "shapes", Shapes())
	sound(t, "icon", Icon(Worse))
}

// Many marks are drawn as the places they take.
func TestManyMarksStaySmall(t *testing.T) {
	row := StripRow{Title: "many", Class: "k0"}
	var values []float64
	for i := range 1_000_000 {
		v := 10 + float64(i%1009)/100
		row.Boots = append(row.Boots, Mark{Value: v})
		values = append(values, v)
	}
	s := Strip(Scale(values), row)
	if len(s) > 32<<10 {
		t.Errorf("%d bytes", len(s))
	}
	if !strings.Contains(s, "991 at 10") && !strings.Contains(s, " from 10 to ") {
		t.Errorf("the number of marks is not said: %.600s", s)
	}
	sound(t, "many", s)
}

var place100 = regexp.MustCompile(` (x|x1|x2|cx)="(-?[0-9.]+)%"`)

func sound(t *testing.T, name, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	titles := 0
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v in %.300s", name, err, s)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "title" {
			titles++
		}
	}
	if titles == 0 {
		t.Errorf("%s: no title", name)
	}
	if strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
		t.Errorf("%s: NaN or Inf in %s", name, s)
	}
	for _, m := range place100.FindAllStringSubmatch(s, -1) {
		if x, err := strconv.ParseFloat(m[2], 64); err != nil || x < 0 || x > 100 {
			t.Errorf("%s: %s at %s%%", name, m[1], m[2])
		}
	}
}

func FuzzAxis(f *testing.F) {
	f.Add(1.0, 2.0, 3.0)
	f.Add(-1e308, 1e308, 5e-324)
	f.Fuzz(func(t *testing.T, a, b, c float64) {
		for _, x := range []Axis{Scale([]float64{a, b, c}), Change(a)} {
			if n := len(x.Ticks); n == 0 || n > 13 {
				t.Fatalf("%d ticks for %g %g %g", n, a, b, c)
			}
			s := Strip(x, StripRow{Title: "t", Boots: []Mark{{a, ""}, {b, ""}, {c, fmt.Sprint(c)}}}) + Ruler(x, "t", "", "")
			if strings.Contains(strings.ReplaceAll(s, fmt.Sprint(c), ""), "NaN") {
				t.Fatalf("%g %g %g: %s", a, b, c, s)
			}
		}
	})
}

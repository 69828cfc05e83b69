package stats

import (
	"math"
	"strings"
	"testing"

	upstream "github.com/aclements/go-moremath/stats"
	"pgregory.net/rapid"
)

func close9(t *testing.T, what string, got Number, want float64) {
	t.Helper()
	if !got.OK() || math.Abs(got.Value-want) > 1e-8*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: %+v, want %.10g", what, got, want)
	}
}

// Reference values: R 4.2.2.
//
//	t.test(log(y), log(x)); t.test(log(y), log(x), conf.level = .9); wilcox.test(y, x, exact = TRUE)
func TestCompareAgreesWithR(t *testing.T) {
	for name, c := range map[string]struct {
		base, v []float64
		// difference of mean logs, t, df, p of t, 95 % and 90 % interval, p of U
		want [9]float64
	}{
		"five": {[]float64{98.2, 99.1, 100.4, 101.0, 99.7}, []float64{103.1, 102.2, 104.9, 103.3, 101.8},
			[9]float64{0.03334040133, 4.661841599, 7.974781449, 0.001633272069, 0.01683931658, 0.04984148609, 0.02003589439, 0.04664490828, 0.007936507937}},
		"four and six": {[]float64{10.1, 10.4, 9.8, 10.0}, []float64{10.2, 9.9, 10.3, 10.6, 10.5, 9.7},
			[9]float64{0.01207640891, 0.6479769996, 7.856620401, 0.5354726984, -0.03103771314, 0.05519053096, -0.02266233511, 0.04681515293, 0.6095238095}},
		"wide": {[]float64{1e-3, 2e-3, 5e-4, 3e-3}, []float64{4e-3, 8e-3, 2.5e-3, 1e-2, 6e-3},
			[9]float64{1.420621167, 3.050271303, 5.22568463, 0.02684162367, 0.2387943621, 2.602447972, 0.4910200383, 2.350222296, 0.03174603175}},
	} {
		got := Compare(Sample{Values: c.base}, Sample{Values: c.v})
		close9(t, name+" delta", got.Delta, c.want[0])
		close9(t, name+" change", got.Change, math.Expm1(c.want[0]))
		close9(t, name+" se", got.SE, c.want[0]/c.want[1])
		close9(t, name+" df", got.DF, c.want[2])
		close9(t, name+" p_t", got.PT, c.want[3])
		close9(t, name+" low", got.Low, math.Expm1(c.want[4]))
		close9(t, name+" high", got.High, math.Expm1(c.want[5]))
		close9(t, name+" low90", got.Low90, math.Expm1(c.want[6]))
		close9(t, name+" high90", got.High90, math.Expm1(c.want[7]))
		close9(t, name+" p_u", got.PU, c.want[8])
		close9(t, name+" p", got.P, math.Max(c.want[3], c.want[8]))
		if got.Scale != Ratio || got.Sessions != 1 || got.Left != 0 || got.Note != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// t.test(v, base) and coin::wilcox_test(distribution = "exact"), R 4.2.2. A 0 has
// no logarithm: the means themselves are compared.
func TestZerosAreComparedByDifference(t *testing.T) {
	c := Compare(Sample{Values: []float64{0, 0.1, 0, 0, 0.2}}, Sample{Values: []float64{0.2, 0, 0.4, 0.1, 0.3}})
	if c.Scale != Difference {
		t.Fatalf("%+v", c)
	}
	close9(t, "change", c.Change, 0.14)
	close9(t, "df", c.DF, 6.322206096)
	close9(t, "p_t", c.PT, 0.1330803061)
	close9(t, "low", c.Low, -0.05635789531)
	close9(t, "high", c.High, 0.3363578953)
	close9(t, "low90", c.Low90, -0.01643548302)
	close9(t, "high90", c.High90, 0.296435483)
	close9(t, "p_u", c.PU, 0.2063492063)
	close9(t, "half width", c.HalfWidth, 0.1963578953/0.06)
	close9(t, "level", c.Level[0], 0.06)
}

// Ties: equal sizes by coin::wilcox_test(v ~ g, distribution = "exact"); unequal
// ones by enumerating combn() in R, twice the smaller tail. Without ties:
// wilcox.test(exact = TRUE).
func TestUAgreesWithR(t *testing.T) {
	seq := func(n int, step, from float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = step*float64(i+1) + from
		}
		return x
	}
	for name, c := range map[string]struct {
		base, v []float64
		p       float64
	}{
		"ties, 5 and 5":     {[]float64{32, 31.9, 32, 31.8, 31.9}, []float64{32.1, 32, 32.1, 32.2, 32}, 0.04761904762},
		"ties, 6 and 6":     {[]float64{1, 1, 2, 2, 3, 3}, []float64{2, 3, 3, 4, 4, 4}, 0.05411255411},
		"ties, 4 and 7":     {[]float64{1, 1, 2, 2}, []float64{2, 3, 3, 1, 4, 3, 3}, 0.07272727273},
		"ties, 3 and 5":     {[]float64{5, 5, 5}, []float64{5, 6, 6, 6, 7}, 0.1428571429},
		"40 and 40":         {seq(40, 1, 0), seq(40, 1, 6.5), 0.02115775683},
		"49 and 49":         {seq(49, 1, 0.003), seq(49, 1.01, 8), 0.006556364984},
		"all equal":         {[]float64{5, 5, 5}, []float64{5, 5, 5, 5}, 1},
		"smallest, 2 and 8": {seq(2, 1, 0), seq(8, 1, 10), 2.0 / 45},
	} {
		close9(t, name, Compare(Sample{Values: c.base}, Sample{Values: c.v}).PU, c.p)
		if p := Compare(Sample{Values: c.v}, Sample{Values: c.base}).PU; math.Abs(p.Value-c.p) > 1e-8 {
			t.Errorf("%s, swapped: %v", name, p)
		}
	}
}

// wilcox.test(b, a, exact = FALSE, correct = TRUE), R 4.2.2, of 60 and 55 rounded
// values: beyond ExactBoots.
func TestManyBootsUseTheNormalApproximation(t *testing.T) {
	a := []float64{98.7, 100.4, 98.3, 103.2, 100.7, 98.4, 101, 101.5, 101.2, 99.4, 103, 100.8, 98.8, 95.6, 102.2, 99.9, 100, 101.9, 101.6, 101.2,
		101.8, 101.6, 100.1, 96, 101.2, 99.9, 99.7, 97.1, 99, 100.8, 102.7, 99.8, 100.8, 99.9, 97.2, 99.2, 99.2, 99.9, 102.2, 101.5,
		99.7, 99.5, 101.4, 101.1, 98.6, 98.6, 100.7, 101.5, 99.8, 101.8, 100.8, 98.8, 100.7, 97.7, 102.9, 104, 99.3, 97.9, 101.1, 99.7}
	b := []float64{105.8, 100.9, 102.4, 101.1, 99.5, 101.4, 97.4, 103.9, 101.3, 105.3, 102, 99.6, 102.2, 99.1, 98.5, 101.6, 100.1, 101, 101.1, 99.8,
		99.9, 100.7, 103.4, 98, 102.2, 101.7, 103.1, 100.4, 101.7, 101.5, 99.9, 103.4, 103.3, 102.4, 104.2, 102.1, 98.4, 99.9, 98.6, 100.1,
		99.8, 101.1, 99.2, 101.3, 99.7, 104.5, 102.4, 102.8, 101.8, 104.4, 99.7, 100.1, 103.9, 99.7, 100.6}
	close9(t, "60 and 55", Compare(Sample{Values: a}, Sample{Values: b}).PU, 0.006938660964)
	exactly := Compare(Sample{Values: a[:50]}, Sample{Values: b[:50]}).PU.Value
	r := ranked([]stratum{{z: [2][]float64{a[:50], b[:50]}}})
	if p := approximate(r); math.Abs(p/exactly-1) > 0.1 {
		t.Errorf("at the limit: exact %v, approximation %v", exactly, p)
	}
}

// An implementation of others agrees wherever the distribution is symmetric.
func TestUAgreesWithMoremath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		value := rapid.Map(rapid.IntRange(1, 9), func(i int) float64 { return float64(i) })
		a := rapid.SliceOfN(value, n, n).Draw(t, "a")
		b := rapid.SliceOfN(value, n, n).Draw(t, "b")
		got := uTest([]stratum{{z: [2][]float64{a, b}}})
		want := 1.0
		if r, err := upstream.MannWhitneyUTest(b, a, upstream.LocationDiffers); err == nil {
			want = math.Min(1, r.P)
		}
		if math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v, theirs %v", got, want)
		}
	})
}

// Two sessions of 3 and 3, and of 2 and 3 boots. The difference is
// coef(lm(log(v) ~ factor(session) + kernel)); the rest by the formulas of
// strata.go in R. p of U by enumerating the 200 permutations of aligned ranks.
func TestSessionsAreStrata(t *testing.T) {
	base := Sample{Values: []float64{100.2, 99.5, 100.9, 110.4, 110.9}, Session: []int{1, 1, 1, 2, 2}}
	v := Sample{Values: []float64{103.1, 102.6, 101.1, 112.9, 114.0, 112.2}, Session: []int{1, 1, 1, 2, 2, 2}}
	c := Compare(base, v)
	if c.Sessions != 2 || c.Boots != [2]int{5, 6} || c.Left != 0 {
		t.Errorf("%+v", c)
	}
	close9(t, "delta", c.Delta, 0.0207948122)
	close9(t, "se", c.SE, 0.004631649012)
	close9(t, "df", c.DF, 6.772329955)
	close9(t, "p_t", c.PT, 0.003075885806)
	close9(t, "low", c.Low, math.Expm1(0.009767621102))
	close9(t, "high", c.High, math.Expm1(0.0318220033))
	close9(t, "p_u", c.PU, 0.01)
	close9(t, "attainable", c.Attainable, 0.01)
	mixed := Compare(Sample{Values: base.Values}, Sample{Values: v.Values})
	if mixed.PT.Value < 0.1 {
		t.Errorf("sessions of different level told apart without strata: %+v", mixed)
	}
}

// t.test(log(v) - log(base)): one boot of each kernel in each of three sessions.
func TestSessionsOfOneBootAreThePairedT(t *testing.T) {
	s := []int{1, 2, 3}
	c := Compare(Sample{Values: []float64{100, 109, 104}, Session: s}, Sample{Values: []float64{103, 111, 107}, Session: s})
	close9(t, "delta", c.Delta, 0.02539301888)
	close9(t, "df", c.DF, 2)
	close9(t, "p_t", c.PT, 0.01972206693)
	close9(t, "low", c.Low, math.Expm1(0.009818103538))
	close9(t, "high", c.High, math.Expm1(0.04096793423))
	close9(t, "p_u", c.PU, 0.25) // 2 of 8 permutations
}

// p.adjust(p, method = "holm").
func TestHolmAgreesWithR(t *testing.T) {
	for _, c := range [][2][]float64{
		{{.01, .04, .03, .005, .2}, {.04, .09, .09, .025, .2}},
		{{.0079, .0079, .5, .02, .9, .0079}, {.0474, .0474, 1, .06, 1, .0474}},
		{{}, {}},
	} {
		var p []Number
		for _, v := range c[0] {
			p = append(p, Num(v))
		}
		for i, got := range Holm(p) {
			close9(t, "holm", got, c[1][i])
		}
	}
	got := Holm([]Number{Num(.03), Missing("no boots"), Num(.01)})
	close9(t, "one missing", got[2], .02)
	if got[1].Missing != "no boots" {
		t.Errorf("%+v", got)
	}
}

// Two-sample Welch from summary figures, in R: (m2 - m1) / sqrt(s1^2/n + s2^2/n).
// The figures are the elapsed times of the kernbench posting of August 2010.
func TestWithinFromPrintedAverages(t *testing.T) {
	for _, c := range []struct{ m1, s1, m2, s2, t, df, p float64 }{
		{89.302, .0396232, 89.05, .0324037, -11.00867584, 7.696811515, 5.561767967e-06},
		{45.56, .100995, 45.826, .0931665, 4.328782809, 7.94848139, 0.002554592653},
		{25.632, .131985, 25.598, .109179, -0.4438468753, 7.728424157, 0.6693165331},
		{26.65, .0244949, 26.408, .0614003, -8.185774949, 5.241758197, 0.0003525798993},
	} {
		w := Within(Moments{5, c.m1, c.s1}, Moments{5, c.m2, c.s2})
		close9(t, "t", w.T, c.t)
		close9(t, "df", w.DF, c.df)
		close9(t, "p", w.P, c.p)
	}
}

// qt(.975, df), qt(.95, df), 2 * pt(-9.5, df): R.
func TestStudentAgreesWithR(t *testing.T) {
	for _, c := range [][4]float64{
		{1, 12.7062047362, 6.31375151468, 0.0667667328611},
		{1.3, 7.50052932556, 4.33333918347, 0.036917581485},
		{2, 4.30265272975, 2.91998558035, 0.0108995080388},
		{3.7, 2.86752070719, 2.18249380391, 0.000990328354114},
		{5.22568463, 2.53754658289, 1.99598296276, 0.000171495837244},
		{12, 2.17881282967, 1.78228755565, 6.21560490704e-07},
		{55.5, 2.00363905106, 1.67277579055, 3.10012839273e-13},
		{1000, 1.96233908083, 1.64637881729, 1.49674048777e-20},
		{123456.7, 1.95998320014, 1.64486596958, 2.13456757162e-21},
		{2e6, 1.95996517068, 1.64485438884, 2.10108816396e-21},
		{5e7, 1.95996403199, 1.64485365743, 2.09899037989e-21},
	} {
		for i, got := range []float64{quantileT(0.975, c[0]), quantileT(0.95, c[0]), pOfT(9.5, c[0]).Value} {
			if math.Abs(got/c[i+1]-1) > 1e-7 {
				t.Errorf("df %v: %.12g, want %.12g", c[0], got, c[i+1])
			}
		}
	}
}

// Overlapping values in two sessions: the 200 permutations of aligned ranks
// enumerated in R.
func TestAlignedRanksAgreeWithR(t *testing.T) {
	c := Compare(Sample{Values: []float64{100.2, 99.5, 102.9, 110.4, 113.9}, Session: []int{1, 1, 1, 2, 2}},
		Sample{Values: []float64{103.1, 99.9, 101.1, 109.9, 114.0, 112.2}, Session: []int{1, 1, 1, 2, 2, 2}})
	close9(t, "p_u", c.PU, 0.77)
}

// summary(lm(log(v) ~ factor(session) + kernel)), confint(): R. One session of two
// boots each, three of one.
func TestManySmallSessionsAreLeastSquares(t *testing.T) {
	s := []int{1, 1, 2, 3, 4}
	c := Compare(Sample{Values: []float64{100, 101, 110, 95, 105}, Session: s}, Sample{Values: []float64{103, 102.5, 114, 96.5, 109}, Session: s})
	close9(t, "delta", c.Delta, 0.02661456308)
	close9(t, "se", c.SE, 0.004387907292)
	close9(t, "df", c.DF, 5)
	close9(t, "p_t", c.PT, 0.001758570451)
	if !strings.Contains(c.Note, "taken to spread alike") {
		t.Errorf("%+v", c)
	}
}
